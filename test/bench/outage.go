package main

import (
	"fmt"
	"time"

	"github.com/tenure-go/tenure/test/internal/asking"
	"github.com/tenure-go/tenure/test/internal/figures"
	"github.com/tenure-go/tenure/test/internal/machine"
)

// outage cuts all members off from the servers at once.
type outage struct {
	modes     []mode
	elections int
	lease     time.Duration
	rounds    choice[int]
}

func (x outage) about() about {
	return about{"outage", fmt.Sprintf("no process can reach the servers for five leases of %v, and "+
		"then all can again; three candidates, %d elections at the same time", x.lease, x.elections),
		"Connections stay open and every byte is lost; they end when the outage does. The time is from " +
			"the end of the outage to the call of lead. Polls are a third of a lease apart, and up to a " +
			"tenth more"}
}

func (x outage) measure(t *trial) {
	modes := x.modes
	bound := figures.Bound{Max: x.lease + x.lease/3*11/10}
	inTurn(t, len(modes), func(t *trial, i int) {
		c := t.crew(plan{name: "outage", members: 3, elections: x.elections, lease: x.lease,
			mode: modes[i], ask: asking.ByTerm, relayed: true})
		c.electFirst()
		var after figures.Dist
		for range pick(t.bench, x.rounds) {
			c.sleep(x.lease)
			after = append(after, c.blackOut()...)
		}
		t.report(timed(modes[i].label()+"store back to leader", after, bound, ""),
			judgedLine(modes[i].label(), c.book.Judge(), ""))
	})
}

// blackOut cuts all members off. It returns, for each election, the time from the end of the cut to
// the next leader.
func (c *crew) blackOut() (after figures.Dist) {
	var heal []func()
	for _, m := range c.members {
		heal = append(heal, m.relays.Cut(true))
	}
	c.sleep(5 * c.lease)
	mark, end := c.journal.mark(), machine.Now()
	for _, heal := range heal {
		heal()
	}
	for _, e := range c.successors(mark, c.role.Elections) {
		after = append(after, time.Duration(e.At-end))
	}
	return after
}
