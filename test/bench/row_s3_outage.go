package main

import (
	"fmt"
	"time"

	"github.com/tenure-go/tenure/test/internal/asking"
	"github.com/tenure-go/tenure/test/internal/figures"
	"github.com/tenure-go/tenure/test/internal/machine"
)

var objectOutageRow = row{
	name: "s3-outage",
	title: "object storage that nobody can reach for five leases of 2 s, and then everybody again; three candidates, 20 elections " +
		"side by side",
	note: "Connections stay open and every byte is lost; they end when the outage does. The time is from that end to the entry into " +
		"lead. A poll takes a third of a lease, and up to a tenth more. Questions and answers are those of row pause",
	measure: objectOutage,
}

const (
	outageElections = 20
	outageLease     = 2 * time.Second
)

func objectOutage(b *bench) ([]measure, error) {
	rounds := b.pick(1, 3)
	both, err := parallel(2, func(i int) ([]outage, error) {
		o, err := b.outage(i == 1, rounds)
		return []outage{o}, err
	})
	if err != nil {
		return nil, err
	}
	bound := outageLease + outageLease/3*11/10
	var found []measure
	for i, o := range both {
		what := kind(i == 1)
		found = append(found,
			measure{what: what + ": store back to leader", value: o.after.String(), bound: "max " + figures.Show(bound) + ": lease and poll",
				verdict: figures.Within(o.after.Max() <= bound)},
			measure{what: what + ": answers of yes after the next was elected", value: o.stale, bound: "0", verdict: figures.Safe(o.safe)})
	}
	return found, nil
}

// outage is what was found after the outages, and during them.
type outage struct {
	after figures.Dist
	stale string
	safe  bool
}

func (b *bench) outage(peers bool, rounds int) (outage, error) {
	c, err := b.stage(scene{name: fmt.Sprintf("outage-%t", peers), members: 3, elections: outageElections, lease: outageLease,
		ask: asking.ByTerm, peers: peers, relayed: true})
	defer c.dismiss()
	if err != nil {
		return outage{}, err
	}
	if _, err := c.enthrone(); err != nil {
		return outage{}, err
	}
	var o outage
	for range rounds {
		b.sleep(outageLease)
		back, err := c.blackOut()
		if err != nil {
			return o, err
		}
		o.after = append(o.after, back...)
	}
	v := c.book.Judge()
	o.stale, o.safe = overlap(v, rounds*outageElections), v.Safe()
	return o, nil
}

// blackOut returns how long after its end there were leaders.
func (c *cast) blackOut() (figures.Dist, error) {
	for _, m := range c.members {
		m.relay.Blackhole()
	}
	c.b.sleep(5 * c.role.Lease)
	mark, end := c.journal.mark(), machine.Now()
	for _, m := range c.members {
		m.relay.Heal()
	}
	next, err := c.successors(mark, c.role.Elections)
	var after figures.Dist
	for _, e := range next {
		after = append(after, time.Duration(e.At-end))
	}
	return after, err
}
