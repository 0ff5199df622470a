package main

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/tenure-go/tenure/test/internal/figures"
)

var objectStopRow = row{
	name:  "s3-stop",
	title: "object storage: the leader is stopped gracefully, lease 15 s, which without peers is also the time between two polls",
	note: "From the stamp before the release is sent to the entry into the successor's lead. With peers one election of three " +
		"candidates, again and again; without, a process that leads 100 elections (40 in a quick run), polled out of step, stops once. The first of n " +
		"followers polls 15 s / (n+1) after a release on average; the bound is the interval of Config.Poll, at the median",
	measure: objectStop,
}

func objectStop(b *bench) ([]measure, error) {
	told, err := b.objectHandovers(b.pick(30, 200))
	if err != nil {
		return nil, err
	}
	found := []measure{{what: "with peers: release sent to next leader", value: told.String(), bound: "median 25 ms",
		verdict: figures.Within(told.Median() <= 25*time.Millisecond), others: "S3lect 3.9 s median"}}
	crowds := []int{candidates, 3}
	polled, err := parallel(len(crowds), func(i int) ([]figures.Dist, error) {
		d, err := b.objectReleases(crowds[i])
		return []figures.Dist{d}, err
	})
	if err != nil {
		return found, err
	}
	poll := b.objectLease() / 3
	for i, d := range polled {
		found = append(found,
			measure{what: fmt.Sprintf("without peers, %d candidates: the same", crowds[i]), value: d.String(),
				bound: "median " + figures.Show(poll), verdict: figures.Within(d.Median() <= poll)},
			measure{what: "of these above " + figures.Show(poll), value: fmt.Sprintf("%d of %d", d.Above(poll), len(d))})
	}
	return found, nil
}

// objectHandovers stops one leader after another.
func (b *bench) objectHandovers(n int) (figures.Dist, error) {
	c, err := b.stage(scene{name: "stop", members: 3, elections: 1, lease: b.objectLease(), peers: true})
	defer c.dismiss()
	if err != nil {
		return nil, err
	}
	if _, err := c.enthrone(); err != nil {
		return nil, err
	}
	c.role.Spread = 0
	c.ready = 4 * settle
	return c.stops(n)
}

// objectReleases stops a process that leads many elections.
func (b *bench) objectReleases(members int) (figures.Dist, error) {
	c, err := b.stage(scene{name: fmt.Sprintf("stop%d", members), members: members, elections: b.pick(40, 100), lease: b.objectLease()})
	defer c.dismiss()
	if err != nil {
		return nil, err
	}
	leader, err := c.enthrone()
	if err != nil {
		return nil, err
	}
	b.sleep(rand.N(b.objectLease()))
	mark := c.journal.mark()
	elections := c.ledBy(c.role.Elections, leader)
	if err := leader.tell(command{Do: stop}); err != nil {
		return nil, err
	}
	next, err := c.successors(mark, elections, leader)
	if err != nil {
		return nil, err
	}
	news, _ := c.journal.since(mark)
	var d figures.Dist
	for _, e := range next {
		release, ok := last(news, func(r entry) bool {
			return r.What == sending && r.Released && r.who == leader.id && r.Election == e.Election && r.At < e.At
		})
		if !ok { // the lease was lost before
			fmt.Fprintf(b.log, "  %s has a new leader without a release\n", e.Election)
			continue
		}
		d = append(d, time.Duration(e.At-release.At))
	}
	if len(d) == 0 {
		return nil, errNotLeading
	}
	return d, nil
}
