package main

import (
	"fmt"
	"time"

	"github.com/tenure-go/tenure/internal/witness"
	"github.com/tenure-go/tenure/test/internal/asking"
	"github.com/tenure-go/tenure/test/internal/machine"
)

// strike disables a leader until another one leads, lets it return, and judges whether two led at
// once.
type strike struct {
	name, title, note string
	modes             []mode
	elections         int // of each leader; 0 means one
	lease             time.Duration
	groups, rounds    choice[int]
	relayed           bool
	others            string
	// hit disables the leader. It returns the function that ends that, to call after hold at least.
	hit  func(c *crew, leader *member, round int) (end func())
	hold func(c *crew) time.Duration
	// begin makes the crew campaign.
	begin func(*crew)
	// control names a planted mistake, for the same strikes. beginControl starts it.
	control      string
	beginControl func(*crew)
}

const byMemory = "work that goes by memory"

// cut cuts the leader off from all servers.
func cut(x strike) strike {
	x.name, x.relayed = "cut", true
	x.lease = max(x.lease, time.Second)
	x.title = fmt.Sprintf("the leader's process is cut off from all servers for two and a half "+
		"leases of %v: connections stay open, and every byte in both directions is lost (odd runs) or "+
		"arrives when the cut is over (even runs)", x.lease)
	x.note = "Three candidates, each through TCP relays of its own"
	x.hold = func(c *crew) time.Duration { return 5 * c.lease / 2 }
	x.hit = func(_ *crew, leader *member, round int) func() { return leader.relays.Cut(round%2 == 0) }
	return byTerm(x)
}

// pause stops the leader's process.
func pause(x strike) strike {
	x.name = "pause"
	x.lease = max(x.lease, time.Second)
	x.title = fmt.Sprintf("a process that leads %s is stopped (SIGSTOP) for two leases of %v and "+
		"goes on (SIGCONT), three processes", elections(x.elections), x.lease)
	x.note = "Three candidates"
	x.hold = func(c *crew) time.Duration { return 2 * c.lease }
	x.hit = func(_ *crew, leader *member, _ int) func() {
		check(machine.Pause(leader.pid()))
		return func() { check(machine.Resume(leader.pid())) }
	}
	return byTerm(x)
}

// byTerm strikes leaders whose work asks the term. The control is work that asks a flag.
func byTerm(x strike) strike {
	x.begin = func(c *crew) { c.electFirst() }
	x.control = byMemory
	x.beginControl = func(c *crew) {
		c.role.Ask = asking.ByMemory
		c.electFirst()
	}
	return x
}

func (x strike) about() about { return about{x.name, x.title, x.note} }

func (x strike) measure(t *trial) {
	modes := x.modes
	rounds := t.repeat(x.rounds, pick(t.bench, x.groups))
	inTurn(t, len(modes)+1, func(t *trial, i int) {
		if i < len(modes) {
			v := x.strikes(t, modes[i], x.begin, rounds)
			t.report(judgedLine(modes[i].label(), v, x.others))
			return
		}
		t.report(controlled(x.control, func() witness.Verdict {
			return x.strikes(t, modes[0], x.beginControl, min(2, rounds))
		}))
	})
}

// strikes strikes several crews at the same time.
func (x strike) strikes(t *trial, m mode, begin func(*crew), rounds int) (sum witness.Verdict) {
	for _, v := range sideBySide(t, pick(t.bench, x.groups), func(t *trial, _ int) witness.Verdict {
		c := t.crew(plan{name: x.name, members: 3, elections: max(x.elections, 1), lease: x.lease,
			mode: m, ask: asking.ByTerm, relayed: x.relayed})
		begin(c)
		for round := range rounds {
			c.sleep(settle)
			x.strike(c, round)
		}
		v := c.book.Judge()
		fmt.Fprintf(t.log, "  %s: %+v\n", c.name, v)
		return v
	}) {
		sum = sum.Plus(v)
	}
	return sum
}

// strike strikes a leader once. It returns when others lead the leader's elections, and the leader
// has had time to learn of that.
func (x strike) strike(c *crew, round int) {
	mark := c.journal.mark()
	leader := c.lastElected()
	led := c.ledBy(leader)
	over := time.Now().Add(x.hold(c))
	end := x.hit(c, leader, round)
	c.successors(mark, led, leader)
	c.sleep(time.Until(over))
	end()
	c.sleep(c.lease)
}
