package main

import (
	"fmt"
	"time"

	acts "github.com/tenure-go/tenure/internal/witness"
	"github.com/tenure-go/tenure/test/internal/asking"
	"github.com/tenure-go/tenure/test/internal/figures"
)

var cutRow = row{
	name: "cut",
	title: "the leader's process is cut off from the server for two and a half leases of 1 s: its connection stays open, and " +
		"every byte in both directions is lost (odd runs) or arrives when the cut is over (even runs)",
	note:    "Three candidates, each through a TCP relay of its own. Questions, answers and the control are those of row pause",
	measure: cut,
}

const cutLease = time.Second

func cut(b *bench) ([]measure, error) {
	const groups = 5
	rounds := b.pick(2, 20)
	right, err := b.cuts(asking.ByTerm, groups, rounds)
	if err != nil {
		return nil, err
	}
	control, err := controlled(byMemory, 2*groups, func() (acts.Verdict, error) { return b.cuts(asking.ByMemory, groups, 2) })
	if err != nil {
		return nil, err
	}
	return []measure{
		{what: "answers of yes after the next was elected", value: overlap(right, groups*rounds), bound: "0",
			verdict: figures.Safe(right.Safe()), before: "two leaders while an update hangs",
			others: "etcd two for 435-943 ms in 13 of 16"},
		control,
	}, nil
}

// cuts plays in several groups side by side, and adds up their verdicts.
func (b *bench) cuts(how asking.Way, groups, rounds int) (acts.Verdict, error) {
	bucket, err := b.bucket()
	if err != nil {
		return acts.Verdict{}, err
	}
	return judgeAll(groups, func(i int) (acts.Verdict, error) {
		return b.cutGroup(bucket, fmt.Sprintf("cut%d", i), how, rounds)
	})
}

// judgeAll plays n scenes side by side and adds up their verdicts.
func judgeAll(n int, play func(i int) (acts.Verdict, error)) (acts.Verdict, error) {
	verdicts, err := parallel(n, func(i int) ([]acts.Verdict, error) {
		v, err := play(i)
		return []acts.Verdict{v}, err
	})
	var sum acts.Verdict
	for _, v := range verdicts {
		sum = sum.Plus(v)
	}
	return sum, err
}

func (b *bench) cutGroup(bucket, name string, how asking.Way, rounds int) (acts.Verdict, error) {
	c, err := b.relayedCast(name, 3,
		command{Do: start, Bucket: bucket, Elections: []string{name}, Lease: cutLease, Ask: how})
	defer c.dismiss()
	if err != nil {
		return acts.Verdict{}, err
	}
	if err := c.join(0, c.members...); err != nil {
		return acts.Verdict{}, err
	}
	_, _, err = c.successor(0, nil)
	for round := range rounds {
		if err != nil {
			return acts.Verdict{}, err
		}
		c.b.sleep(settle)
		err = c.cutOff(c.present(), round%2 == 0)
	}
	fmt.Fprintf(b.log, "  %s: %+v\n", name, c.book.Judge())
	return c.book.Judge(), err
}

// cutOff returns when there is another leader and the old one is connected again.
func (c *cast) cutOff(leader *member, lossy bool) error {
	mark := c.reign(leader)
	if lossy {
		leader.relay.Blackhole()
	} else {
		leader.relay.Hold()
	}
	end := time.Now().Add(5 * cutLease / 2)
	if _, _, err := c.successor(mark, leader); err != nil {
		return err
	}
	c.b.sleep(time.Until(end))
	if !lossy {
		leader.relay.Release()
		return nil
	}
	mark = c.journal.mark()
	leader.relay.Heal()
	_, err := c.await(mark, leader, connected)
	return err
}
