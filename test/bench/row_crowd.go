package main

import (
	"fmt"
	"time"

	"github.com/tenure-go/tenure/test/internal/figures"
)

var crowdRow = row{
	name:  "crowd",
	title: "1,000 elections by Start in one process over one connection, lease 15 s",
	note: "One process leads all, another follows all. Goroutines and heap (after a collection, of live objects) are the " +
		"differences to the same process before it started, goroutines at rest and at most: all leaders were elected at once here " +
		"and renew at once, with a goroutine or two for each write under way. The processor's time is user and system time of " +
		"the process, one core being 100 %. Leaders run the user's function in a goroutine each, which is the user's",
	measure: crowd,
}

const crowdSize = 1000

func crowd(b *bench) ([]measure, error) {
	window := time.Duration(b.pick(5, 60)) * time.Second
	bucket, err := b.bucket()
	if err != nil {
		return nil, err
	}
	role := command{Do: start, Bucket: bucket, Lease: 15 * time.Second, Quiet: true}
	for i := range crowdSize {
		role.Elections = append(role.Elections, fmt.Sprintf("crowd-%d", i))
	}
	c, err := b.cast("crowd", 2, role)
	defer c.dismiss()
	if err != nil {
		return nil, err
	}
	leading, following, err := c.weigh(window)
	if err != nil {
		return nil, err
	}
	return []measure{
		{what: "following: goroutines, at rest / most", value: fmt.Sprint(following.Goroutines, " / ", following.Peak),
			bound: "none per election", verdict: figures.Within(following.Goroutines < crowdSize/10),
			before: "1 each", others: "client-go 2 each, goNELI 8 threads each"},
		{what: "following: heap per election", value: perElection(following.Heap), before: "5.9 KB",
			others: "etcd 739 B (shared session), client-go 9.5 KB"},
		{what: "following: processor", value: percent(following)},
		{what: "leading: goroutines, at rest / most", value: fmt.Sprint(leading.Goroutines, " / ", leading.Peak),
			bound: "1 per election: lead", verdict: figures.Within(leading.Goroutines < crowdSize+crowdSize/10), before: "1 each"},
		{what: "leading: heap per election", value: perElection(leading.Heap)},
		{what: "leading: processor", value: percent(leading)},
	}, nil
}

func perElection(bytes uint64) string { return fmt.Sprintf("%.1f KB", float64(bytes)/crowdSize/1000) }

func percent(u usage) string {
	return fmt.Sprintf("%.1f %% of a core", 100*float64(u.CPU)/float64(u.At))
}

// weigh lets the first member lead everything and the second follow, and returns what that costs each.
func (c *cast) weigh(window time.Duration) (leading, following usage, err error) {
	first, second := c.members[0], c.members[1]
	var before, early, late []usage
	if before, err = c.usages(); err != nil {
		return
	}
	if err = c.join(0, first); err != nil {
		return
	}
	if err = c.awaitAll(0, first, leads); err != nil {
		return
	}
	if err = c.join(0, second); err != nil {
		return
	}
	c.b.sleep(5 * time.Second) // one interval of renewals: what the beginning cost is over
	if early, err = c.usages(); err != nil {
		return
	}
	c.b.sleep(window)
	if late, err = c.usages(); err != nil {
		return
	}
	return late[0].minus(before[0], early[0]), late[1].minus(before[1], early[1]), nil
}

// minus is the difference to before the start, and of the processor's time to when all was running.
func (u usage) minus(before, running usage) usage {
	return usage{
		Goroutines: u.Goroutines - before.Goroutines,
		Peak:       u.Peak - before.Goroutines,
		Heap:       u.Heap - min(u.Heap, before.Heap),
		Resident:   u.Resident - min(u.Resident, before.Resident),
		CPU:        u.CPU - running.CPU,
		At:         u.At - running.At,
	}
}

// usages asks all members at once.
func (c *cast) usages() ([]usage, error) {
	mark := c.journal.mark()
	if err := c.tell(command{Do: use}); err != nil {
		return nil, err
	}
	var all []usage
	for _, m := range c.members {
		e, err := c.await(mark, m, used)
		if err != nil {
			return nil, err
		}
		all = append(all, *e.Usage)
	}
	return all, nil
}
