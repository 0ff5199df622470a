package main

import (
	"fmt"
	"time"

	"github.com/tenure-go/tenure/test/internal/figures"
)

var freshRow = row{
	name:  "fresh",
	title: "the first election in a bucket without history, three candidates that start together, lease 15 s",
	note: "From the stamp before the leader's first request to the store, on a connection that is there already (the " +
		"request that opens the bucket is included), to the entry into its lead. Each time in a new, empty bucket, for which natskv.Pristine vouches; without it the first leader comes after one lease",
	measure: fresh,
}

func fresh(b *bench) ([]measure, error) {
	n := b.pick(30, 200)
	c, err := b.cast("fresh", 3, command{Do: start, Elections: []string{"fresh"}, Lease: 15 * time.Second})
	defer c.dismiss()
	if err != nil {
		return nil, err
	}
	var d figures.Dist
	for range n {
		took, err := c.firstElection()
		if err != nil {
			return nil, err
		}
		d = append(d, took)
	}
	later, err := b.newKeys()
	return []measure{
		{what: "first request to leader", value: d.String(), bound: "20 ms",
			verdict: figures.Within(d.Max() <= 20*time.Millisecond), before: "22.6 to 26.6 s"},
		{what: "a new key in a bucket with history, in leases", bound: "1",
			value:   fmt.Sprintf("%.2f median, %.2f max, n=%d", leases(later.Median()), leases(later.Max()), len(later)),
			verdict: figures.Within(leases(later.Median()) <= 1.05)},
	}, err
}

const newKeyLease = 2 * time.Second

func leases(d time.Duration) float64 { return d.Seconds() / newKeyLease.Seconds() }

// newKeys begins 20 elections at once in a bucket that has seen others.
func (b *bench) newKeys() (figures.Dist, error) {
	bucket, err := b.bucket()
	if err != nil {
		return nil, err
	}
	if kv, err := b.js.KeyValue(b.ctx, bucket); err != nil {
		return nil, err
	} else if _, err := kv.PutString(b.ctx, "another", "value"); err != nil {
		return nil, err
	}
	role := command{Do: start, Bucket: bucket, Lease: newKeyLease}
	for i := range 20 {
		role.Elections = append(role.Elections, fmt.Sprintf("new-%d", i))
	}
	c, err := b.cast("new", 3, role)
	defer c.dismiss()
	if err != nil {
		return nil, err
	}
	if err := c.tell(c.role); err != nil {
		return nil, err
	}
	if err := c.awaitAll(0, nil, leads); err != nil {
		return nil, err
	}
	return c.sinceOpening(), nil
}

// sinceOpening is, for each election, the time from its leader's first request.
func (c *cast) sinceOpening() figures.Dist {
	opened := map[string]int64{}
	var d figures.Dist
	all, _ := c.journal.since(0)
	for _, e := range all {
		switch e.What {
		case opening:
			opened[e.who] = e.At
		case leads:
			d = append(d, time.Duration(e.At-opened[e.who]))
		}
	}
	return d
}

func (c *cast) firstElection() (time.Duration, error) {
	var err error
	if c.role.Bucket, err = c.b.bucket(); err != nil {
		return 0, err
	}
	mark := c.journal.mark()
	if err := c.tell(c.role); err != nil {
		return 0, err
	}
	e, leader, err := c.successor(mark, nil)
	if err != nil {
		return 0, err
	}
	asked, err := c.await(mark, leader, opening)
	if err != nil {
		return 0, err
	}
	if err := c.halt(); err != nil {
		return 0, err
	}
	if err := c.b.js.DeleteKeyValue(c.b.ctx, c.role.Bucket); err != nil {
		return 0, fmt.Errorf("delete %s: %w", c.role.Bucket, err)
	}
	return time.Duration(e.At - asked.At), nil
}
