package main

import (
	"fmt"
	"time"

	acts "github.com/tenure-go/tenure/internal/witness"
	"github.com/tenure-go/tenure/test/internal/asking"
	"github.com/tenure-go/tenure/test/internal/figures"
)

var objectCutRow = row{
	name: "s3-cut",
	title: "object storage that the leader alone cannot reach for two and a half leases of 2 s: connections stay open, and every " +
		"byte in both directions is lost (odd runs) or arrives when the cut is over (even runs)",
	note: "Three candidates, each through a TCP relay of its own; peers reach one another all the while. Questions, answers and " +
		"the control are those of row pause",
	measure: objectCut,
}

const objectCutLease = 2 * time.Second

func objectCut(b *bench) ([]measure, error) {
	const groups = 5
	rounds := b.pick(1, 10)
	var found []measure
	for _, peers := range []bool{false, true} {
		v, err := b.objectCuts(asking.ByTerm, peers, groups, rounds)
		if err != nil {
			return found, err
		}
		found = append(found, measure{what: kind(peers) + ": answers of yes after the next was elected",
			value: overlap(v, groups*rounds), bound: "0", verdict: figures.Safe(v.Safe()), others: "S3lect: two leaders while the cut lasts"})
	}
	control, err := controlled(byMemory, groups, func() (acts.Verdict, error) {
		return b.objectCuts(asking.ByMemory, false, groups, 1)
	})
	return append(found, control), err
}

func kind(peers bool) string {
	if peers {
		return "with peers"
	}
	return "without peers"
}

func (b *bench) objectCuts(how asking.Way, peers bool, groups, rounds int) (acts.Verdict, error) {
	return judgeAll(groups, func(i int) (acts.Verdict, error) {
		c, err := b.stage(scene{name: fmt.Sprintf("cut%d", i), members: 3, elections: 1, lease: objectCutLease, ask: how,
			peers: peers, relayed: true})
		defer c.dismiss()
		if err != nil {
			return acts.Verdict{}, err
		}
		_, err = c.enthrone()
		for round := range rounds {
			if err != nil {
				return acts.Verdict{}, err
			}
			err = c.cutOffAWhile(c.present(), round%2 == 0)
		}
		return c.book.Judge(), err
	})
}

// cutOffAWhile returns when there is another leader and the old one has had time to learn of it.
func (c *cast) cutOffAWhile(leader *member, lossy bool) error {
	mark := c.reign(leader)
	cut := leader.relay.Hold
	heal := leader.relay.Release
	if lossy {
		cut, heal = leader.relay.Blackhole, leader.relay.Heal
	}
	end := time.Now().Add(5 * c.role.Lease / 2)
	cut()
	_, _, err := c.successor(mark, leader)
	c.b.sleep(time.Until(end))
	heal()
	c.b.sleep(c.role.Lease)
	return err
}
