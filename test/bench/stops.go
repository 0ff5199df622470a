package main

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/tenure-go/tenure/test/internal/figures"
)

// stops measures orderly stops of leaders.
type stops struct {
	prefix string
	of     []stopping
	lease  choice[time.Duration]
	late   figures.Bound // not for polled modes, whose bound is the time between two polls
	others string
}

// stopping stops the leader of some elections again and again.
type stopping struct {
	mode      mode
	members   int         // 0 means three
	elections choice[int] // 0 means one
	rounds    choice[int]
}

func (x stops) about() about {
	return about{x.prefix + "stop",
		fmt.Sprintf("the leader is stopped gracefully (the context of Run ends), lease %v", x.lease),
		"The time is from the stamp before the leader's process sends the release, to the call of the " +
			"successor's lead. There are three candidates, unless the line has another number. If " +
			"followers poll, a process that leads many elections, polled at different times, stops once: " +
			"the first of n followers reads lease / (n+1) after a release on average"}
}

func (x stops) measure(t *trial) {
	poll := pick(t.bench, x.lease) / 3
	inTurn(t, len(x.of), func(t *trial, i int) {
		s := x.of[i]
		all := x.stops(t, s)
		if !s.mode.polled {
			t.report(timed(s.mode.label()+"release sent to next leader", all, x.late, x.others))
			return
		}
		what := fmt.Sprintf("%s%d candidates: ", s.mode.label(), max(s.members, 3))
		t.report(timed(what+"release sent to next leader", all, figures.Bound{Median: poll}, ""),
			measure{what: what + "of these above " + figures.Show(poll),
				value: fmt.Sprintf("%d of %d", all.Above(poll), len(all))})
	})
}

func (x stops) stops(t *trial, s stopping) (all figures.Dist) {
	lease := pick(t.bench, x.lease)
	c := t.crew(plan{name: "stop", members: max(s.members, 3),
		elections: max(pick(t.bench, s.elections), 1), lease: lease, mode: s.mode})
	c.electFirst()
	if s.mode.polled {
		c.sleep(rand.N(lease))
	}
	for range pick(t.bench, s.rounds) {
		all = append(all, c.stopLeader()...)
	}
	if len(all) == 0 {
		check(fmt.Errorf("%w: the leader that was to release had lost its lease", errBusy))
	}
	return all
}

// stopLeader stops the leader, and returns when that member campaigns again. A leader that has lost
// its lease, because the machine is busy, releases nothing.
func (c *crew) stopLeader() (all figures.Dist) {
	mark := c.journal.mark()
	leader := c.lastElected()
	led := c.ledBy(leader)
	c.tell(command{Do: stop}, leader)
	for _, next := range c.successors(mark, led, leader) {
		release, ok := last(c.journal.since(mark), func(e entry) bool {
			return e.What == sending && e.Released && e.who == leader.id &&
				e.Election == next.Election && e.At < next.At
		})
		if !ok {
			fmt.Fprintf(c.log, "  %s has a new leader without a release\n", next.Election)
			continue
		}
		all = append(all, time.Duration(next.At-release.At))
	}
	c.rejoin(mark, leader)
	return all
}
