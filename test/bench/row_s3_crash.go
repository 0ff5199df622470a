package main

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/test/internal/figures"
)

var objectCrashRow = row{
	name:  "s3-crash",
	title: "object storage: the process that leads 30 elections is killed (SIGKILL), three candidates, lease 15 s",
	note: "The lease ends 15 s after the dead leader's last write that reached the store was sent; which one that was, and where " +
		"the measures end, is as in row crash. The elections are renewed and polled out of step with one another. The formula " +
		"is Config.WorstFailover, to which the documentation adds the store's latency: 0.2 s here",
	measure: objectCrash,
}

const orphans = 30

func objectCrash(b *bench) ([]measure, error) {
	rounds := b.pick(1, 2)
	var told, polled figures.Dist
	for range rounds {
		both, err := parallel(2, func(i int) ([]figures.Dist, error) {
			d, err := b.objectCrash(i == 1)
			return []figures.Dist{d}, err
		})
		if err != nil {
			return nil, err
		}
		polled, told = append(polled, both[0]...), append(told, both[1]...)
	}
	lease := b.objectLease()
	worst := tenure.Config{Lease: lease}.WorstFailover(nil)
	since := func(d figures.Dist) figures.Dist {
		var all figures.Dist
		for _, late := range d {
			all = append(all, late+lease)
		}
		return all
	}
	count := func(d figures.Dist) string { return fmt.Sprintf("%d of %d", early(d), len(d)) }
	return []measure{
		{what: "with peers: elected before the lease ended", value: count(told), bound: "0", verdict: figures.Safe(early(told) == 0)},
		{what: "with peers: end of lease to next leader", value: told.String(), bound: "median 100 ms",
			verdict: figures.Within(told.Median() <= 100*time.Millisecond)},
		{what: "without peers: elected before the lease ended", value: count(polled), bound: "0", verdict: figures.Safe(early(polled) == 0)},
		{what: "without peers: last renewal to next leader", value: since(polled).String(), bound: "max " + figures.Show(worst) + ", by the formula",
			verdict: figures.Within(since(polled).Max() <= worst+200*time.Millisecond)},
		{what: "the same in leases, median / max", value: fmt.Sprintf("%.2f / %.2f", since(polled).Median().Seconds()/lease.Seconds(),
			since(polled).Max().Seconds()/lease.Seconds()), others: "S3lect 0.76-0.94 from the crash"},
	}, nil
}

// objectCrash is by how much the next leaders were later than the ends of the leases.
func (b *bench) objectCrash(peers bool) (figures.Dist, error) {
	lease := b.objectLease()
	c, err := b.stage(scene{name: "crash", members: 3, elections: orphans, lease: lease, peers: peers})
	defer c.dismiss()
	if err != nil {
		return nil, err
	}
	leader, err := c.enthrone()
	if err != nil {
		return nil, err
	}
	b.sleep(lease/3 + rand.N(lease/3))
	return c.orphan(c.role.Elections, leader)
}

// orphan kills the leaders of these elections and returns by how much their successors were later than the ends of the
// leases.
func (c *cast) orphan(elections []string, leaders ...*member) (figures.Dist, error) {
	mark := c.journal.mark()
	if elections = c.ledBy(elections, leaders...); len(elections) == 0 {
		return nil, fmt.Errorf("%w: the members to be killed lead nothing any more", errBusy)
	}
	all, _ := c.journal.since(0)
	led := map[string]string{}
	for _, e := range all {
		if e.What == leads {
			led[e.Election] = e.who
		}
	}
	for _, m := range leaders {
		m.kill()
	}
	next, err := c.successors(mark, elections, leaders...)
	if err != nil {
		return nil, err
	}
	var late figures.Dist
	for _, e := range next {
		sent, err := c.lastSend(led[e.Election], e)
		if err != nil {
			return nil, err
		}
		late = append(late, time.Duration(e.At-sent)-c.role.Lease)
	}
	return late, nil
}
