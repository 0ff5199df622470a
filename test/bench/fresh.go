package main

import (
	"fmt"
	"time"

	"github.com/tenure-go/tenure/test/internal/figures"
)

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
	c := t.crew(plan{name: "fresh", members: 3, lease: 15 * time.Second})
	for range pick(t.bench, choice[int]{30, 200}) {
		c.role.Bucket, c.role.Elections = t.unique("fresh"), []string{"fresh"}
		c.servers.create(t.ctx, c.role.Bucket)
		mark := c.journal.mark()
		c.tell(c.role)
		c.heard(mark, nil, leads)
		first = append(first, c.sinceOpening(mark)...)
		mark = c.journal.mark()
		c.tell(command{Do: stop})
		for _, m := range c.members {
			c.heard(mark, m, stopped)
		}
	}
	t.report(timed("first request to leader", first, x.late, x.others))

	const lease = 2 * time.Second
	c = t.crew(plan{name: "new", members: 3, elections: 20, lease: lease})
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
func (c *crew) sinceOpening(mark int) (all figures.Dist) {
	opened := map[string]int64{}
	for _, e := range c.journal.since(mark) {
		switch e.What {
		case opening:
			opened[e.who] = e.At
		case leads:
			all = append(all, time.Duration(e.At-opened[e.who]))
		}
	}
	return all
}
