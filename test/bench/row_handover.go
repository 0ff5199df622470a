package main

import (
	"fmt"
	"time"

	"github.com/tenure-go/tenure/test/internal/figures"
)

var handoverRow = row{
	name:  "stop",
	title: "the leader is stopped gracefully (the context of Run ends), three candidates, lease 15 s",
	note: "From the stamp that the leader's process takes before it sends the release, to the entry into the successor's " +
		"lead. The stopped one campaigns again before the next stop",
	measure: handover,
}

func handover(b *bench) ([]measure, error) {
	n := b.pick(300, 1000)
	bucket, err := b.bucket()
	if err != nil {
		return nil, err
	}
	c, err := b.cast("stop", 3, command{Do: start, Bucket: bucket, Elections: []string{"stop"}, Lease: 15 * time.Second})
	defer c.dismiss()
	if err != nil {
		return nil, err
	}
	d, err := c.handovers(n)
	return []measure{{what: "release sent to next leader", value: d.String(), bound: "median 5 ms, p99 20 ms",
		verdict: figures.Within(d.Median() <= 5*time.Millisecond && d.P99() <= 20*time.Millisecond),
		before:  "54 s", others: "etcd 12 ms, client-go up to 4.4 s"}}, err
}

// handovers lets all campaign and stops one leader after another.
func (c *cast) handovers(n int) (d figures.Dist, err error) {
	if err := c.join(0, c.members...); err != nil {
		return nil, err
	}
	_, leader, err := c.successor(0, nil)
	for i := range n {
		if err != nil {
			return nil, err
		}
		var took time.Duration
		took, leader, err = c.handover(leader)
		d = append(d, took)
		if i%100 == 99 {
			fmt.Fprintf(c.b.log, "  %d of %d\n", i+1, n)
		}
	}
	return d, err
}

// handover stops the leader and returns the next, with all three in place again.
func (c *cast) handover(leader *member) (time.Duration, *member, error) {
	mark := c.journal.mark()
	if err := leader.tell(command{Do: stop}); err != nil {
		return 0, nil, err
	}
	release, err := c.journal.await(c.b.ctx, mark, "a release", func(e entry) bool {
		return e.What == sending && e.Released && e.who == leader.id
	})
	if err != nil {
		return 0, nil, err
	}
	e, next, err := c.successor(mark, leader)
	if err != nil {
		return 0, nil, err
	}
	if _, err := c.await(mark, leader, stopped); err != nil {
		return 0, nil, err
	}
	mark = c.journal.mark()
	if err := c.join(mark, leader); err != nil {
		return 0, nil, err
	}
	c.b.sleep(c.ready)
	return time.Duration(e.At - release.At), next, nil
}
