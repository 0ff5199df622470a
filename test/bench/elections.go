package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"slices"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/internal/crew"
	"github.com/tenure-go/tenure/test/internal/figures"
	"github.com/tenure-go/tenure/test/internal/machine"
	"github.com/tenure-go/tenure/timing"
)

// crash kills leaders.
type crash struct {
	prefix         string
	modes          []mode
	elections      int // of each leader; 0 means one
	lease          choice[time.Duration]
	groups, rounds choice[int]
	busy           int           // processes that compute all the time beside them
	late           figures.Bound // not for polled modes, whose bound is timing.WorstFailover
	others         string
}

func (x crash) about() about {
	beside := ""
	if x.busy > 0 {
		beside = fmt.Sprintf(", beside %d processes that compute all the time", x.busy)
	}
	return about{x.prefix + "crash",
		fmt.Sprintf("the process that leads %s is killed (SIGKILL), three candidates, lease %v%s",
			elections(x.elections), x.lease, beside),
		"The lease begins when the dead leader's process stamped its last write that reached the store, " +
			"just before sending it. The version that the successor's claim replaced says which write " +
			"that was. The measures end when the successor's lead is called. The crash comes at a random " +
			"moment between two renewals, and begins with a stamp before the signal. The formula is " +
			"timing.WorstFailover, with 0.2 s for the store"}
}

// failover holds the times to the next leader: from the end of the lease, and from the crash.
type failover struct{ late, total time.Duration }

func (x crash) measure(t *trial) {
	modes, lease := x.modes, pick(t.bench, x.lease)
	for range x.busy {
		t.spin()
	}
	inTurn(t, len(modes), func(t *trial, i int) {
		all := sideBySide(t, pick(t.bench, x.groups), func(t *trial, _ int) []failover {
			return x.crashes(t, modes[i], lease)
		})
		t.report(x.lines(modes[i], lease, slices.Concat(all...))...)
	})
}

// spin starts a process that computes until the trial ends.
func (t *trial) spin() {
	p := must(crew.Start(exec.Command("sh", "-c", "while :; do :; done")))
	t.cleanup(func() { _ = p.Kill() })
}

// crashes kills one leader after another, and starts a new member for each.
func (x crash) crashes(t *trial, m mode, lease time.Duration) (all []failover) {
	c := t.team(plan{name: "crash", members: 3, elections: max(x.elections, 1), lease: lease, mode: m})
	c.electFirst()
	for range pick(t.bench, x.rounds) {
		c.rest()
		c.sleep(lease/3 + rand.N(lease/3))
		all = append(all, c.killLeaders(c.lastElected())...)
		c.hire(1)
		c.join(c.members[len(c.members)-1])
	}
	return all
}

func (x crash) lines(m mode, lease time.Duration, all []failover) []measure {
	var late, since, total figures.Dist
	for _, f := range all {
		late, since, total = append(late, f.late), append(since, f.late+lease), append(total, f.total)
	}
	bounded := timed(m.label()+"end of lease to next leader", late, x.late, "")
	if m.polled {
		const latency = 200 * time.Millisecond // of the store, as in the documentation
		worst := timing.WorstFailover(tenure.Config{Lease: lease}, nil)
		bounded = timed(m.label()+"last renewal to next leader", since,
			figures.Bound{Max: worst + latency}, "")
		bounded.bound += ", by the formula"
	}
	leases := func(d time.Duration) float64 { return d.Seconds() / lease.Seconds() }
	return []measure{
		none(m.label()+"elected before the lease ended", early(all), len(all)),
		bounded,
		timed(m.label()+"crash to next leader", total, figures.Bound{}, x.others),
		{what: m.label() + "crash and last renewal to next leader, in leases, median / max",
			value: fmt.Sprintf("%.2f / %.2f and %.2f / %.2f", leases(total.Median()), leases(total.Max()),
				leases(since.Median()), leases(since.Max()))},
	}
}

func early(all []failover) (n int) {
	for _, f := range all {
		if f.late < 0 {
			n++
		}
	}
	return n
}

// killLeaders kills leaders, and waits for their successors in all elections that they led.
func (c *team) killLeaders(leaders ...*member) (found []failover) {
	mark := c.journal.Mark()
	led := map[string]string{}
	for _, m := range leaders {
		for _, name := range c.ledBy(m) {
			led[name] = m.id
		}
	}
	if len(led) == 0 {
		check(fmt.Errorf("%w: the members to be killed lead nothing any more", errBusy))
	}
	all, at := c.ledBy(leaders...), machine.Now()
	for _, m := range leaders {
		c.kill(m)
	}
	for _, e := range c.successors(mark, all, leaders...) {
		sent := must(lastSend(c.journal.Since(0), led[e.Election], e))
		found = append(found, failover{time.Duration(e.At-sent) - c.role.Lease, time.Duration(e.At - at)})
	}
	return found
}

// lastSend returns the time when the dead leader sent the write that the successor's claim
// replaced. A request of another candidate copies the leader's write, and the claim may replace
// such a copy. The leader may not have reported the answer to its write. So lastSend looks for the
// first write that the leader sent to replace the same version, and returns the write before it, or
// else the last write.
func lastSend(all []entry, dead string, next entry) (at int64, err error) {
	all = slices.DeleteFunc(slices.Clone(all), func(e entry) bool {
		return e.Election != next.Election || e.What != sending && e.What != wrote
	})
	claim, _ := crew.Last(all, func(e entry) bool {
		return e.who == next.who && e.What == sending && e.At <= next.At
	})
	version := claim.Prev
	for {
		copied, ok := crew.Last(all, func(e entry) bool {
			return e.who != dead && e.What == wrote && e.Version == version
		})
		if !ok {
			break
		}
		version = copied.Prev
	}
	for _, e := range all {
		if e.who != dead || e.What != sending {
			continue
		}
		if e.Prev == version && at > 0 {
			break
		}
		at = e.At
	}
	if at == 0 || claim.At == 0 {
		return 0, errors.New("no claim of the new leader, or no write of the dead one was reported")
	}
	return at, nil
}

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
	c := t.team(plan{name: "stop", members: max(s.members, 3),
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
func (c *team) stopLeader() (all figures.Dist) {
	mark := c.journal.Mark()
	leader := c.lastElected()
	led := c.ledBy(leader)
	c.tell(command{Do: stop}, leader)
	for _, next := range c.successors(mark, led, leader) {
		release, ok := crew.Last(c.journal.Since(mark), func(e entry) bool {
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

// fresh measures first elections in new buckets, for stores that can prove that a bucket is new.
type fresh struct {
	late   figures.Bound
	others string
}

func (fresh) about() about {
	return about{"fresh", "the first election in a bucket without history, three candidates that " +
		"start together, lease 15 s",
		"The time is from the stamp before the leader's first request (the one that opens the bucket), " +
			"on a connection that exists already, to the call of its lead. The store vouches for the " +
			"empty bucket (natskv.Pristine, sqlstore.WithPristine). Without that the first leader is elected after one lease"}
}

func (x fresh) measure(t *trial) {
	var first figures.Dist
	c := t.team(plan{name: "fresh", members: 3, lease: 15 * time.Second})
	for range pick(t.bench, choice[int]{30, 200}) {
		c.role.Bucket, c.role.Elections = t.unique("fresh"), []string{"fresh"}
		check(c.servers.Create(t.ctx, c.role.Bucket))
		mark := c.journal.Mark()
		c.tell(c.role)
		c.heard(mark, nil, leads)
		first = append(first, c.sinceOpening(mark)...)
		mark = c.journal.Mark()
		c.tell(command{Do: stop})
		for _, m := range c.members {
			c.heard(mark, m, stopped)
		}
	}
	t.report(timed("first request to leader", first, x.late, x.others))

	const lease = 2 * time.Second
	c = t.team(plan{name: "new", members: 3, elections: 20, lease: lease})
	must(t.open(c.servers, c.role.Bucket).CompareAndSwap(t.ctx, "another", "", []byte("value")))
	c.tell(c.role)
	c.heardForAll(0, nil, leads)
	later := c.sinceOpening(0)
	leases := func(d time.Duration) float64 { return d.Seconds() / lease.Seconds() }
	t.report(measure{what: "a new key in a bucket with history, in leases", bound: "1",
		value: fmt.Sprintf("%.2f median, %.2f max, n=%d", leases(later.Median()),
			leases(later.Max()), len(later)),
		verdict: figures.Within(leases(later.Median()) <= 1.05)})
}

// sinceOpening returns the times from the first request of each leader to its election, after a
// mark.
func (c *team) sinceOpening(mark int) (all figures.Dist) {
	opened := map[string]int64{}
	for _, e := range c.journal.Since(mark) {
		switch e.What {
		case opening:
			opened[e.who] = e.At
		case leads:
			all = append(all, time.Duration(e.At-opened[e.who]))
		}
	}
	return all
}
