package main

import (
	"fmt"
	"slices"
	"time"

	"github.com/tenure-go/tenure/internal/crew"
	"github.com/tenure-go/tenure/internal/witness"
	"github.com/tenure-go/tenure/test/internal/asking"
	"github.com/tenure-go/tenure/test/internal/figures"
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
	hit  func(c *team, leader *member, round int) (end func())
	hold func(c *team) time.Duration
	// begin makes the team campaign.
	begin func(*team)
	// control names a planted mistake, for the same strikes. beginControl starts it.
	control      string
	beginControl func(*team)
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
	x.hold = func(c *team) time.Duration { return 5 * c.lease / 2 }
	x.hit = func(_ *team, leader *member, round int) func() { return leader.relays.Cut(round%2 == 0) }
	return byTerm(x)
}

// pause stops the leader's process.
func pause(x strike) strike {
	x.name = "pause"
	x.lease = max(x.lease, time.Second)
	x.title = fmt.Sprintf("a process that leads %s is stopped (SIGSTOP) for two leases of %v and "+
		"goes on (SIGCONT), three processes", elections(x.elections), x.lease)
	x.note = "Three candidates"
	x.hold = func(c *team) time.Duration { return 2 * c.lease }
	x.hit = func(_ *team, leader *member, _ int) func() {
		check(leader.Freeze())
		return func() { check(leader.Continue()) }
	}
	return byTerm(x)
}

// byTerm strikes leaders whose work asks the term. The control is work that asks a flag.
func byTerm(x strike) strike {
	x.begin = func(c *team) { c.electFirst() }
	x.control = byMemory
	x.beginControl = func(c *team) {
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

// strikes strikes several teams at the same time.
func (x strike) strikes(t *trial, m mode, begin func(*team), rounds int) (sum witness.Verdict) {
	for _, v := range sideBySide(t, pick(t.bench, x.groups), func(t *trial, _ int) witness.Verdict {
		c := t.team(plan{name: x.name, members: 3, elections: max(x.elections, 1), lease: x.lease,
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
func (x strike) strike(c *team, round int) {
	mark := c.journal.Mark()
	leader := c.lastElected()
	led := c.ledBy(leader)
	over := time.Now().Add(x.hold(c))
	end := x.hit(c, leader, round)
	c.successors(mark, led, leader)
	c.sleep(time.Until(over))
	end()
	c.sleep(c.lease)
}

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
		c := t.team(plan{name: "outage", members: 3, elections: x.elections, lease: x.lease,
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
func (c *team) blackOut() (after figures.Dist) {
	var heal []func()
	for _, m := range c.members {
		heal = append(heal, m.relays.Cut(true))
	}
	c.sleep(5 * c.lease)
	mark, end := c.journal.Mark(), machine.Now()
	for _, heal := range heal {
		heal()
	}
	for _, e := range c.successors(mark, c.role.Elections) {
		after = append(after, time.Duration(e.At-end))
	}
	return after
}

// clocks measures candidates with wrong times of day.
type clocks struct {
	mode   mode
	lease  choice[time.Duration]
	others string
}

// clockErrors holds the errors of the members' clocks, in the order of the members.
var clockErrors = []time.Duration{0, 20 * time.Second, -20 * time.Second, time.Hour}

const ledByEach = 10

func (x clocks) about() about {
	return about{"clocks", fmt.Sprintf("four candidates whose times of day are right, 20 s ahead, "+
		"20 s behind and 1 h ahead, each leading ten of 40 elections, lease %v; after three leases "+
		"the one that is most ahead and the one that is most behind are killed", x.lease),
		"Requests are signed by the wrong time as well. S3 does not accept an error of 1 h: there the " +
			"client library uses the server's time. The control compares the times of day in records " +
			"that candidates read with the candidates' own, and counts how often it would claim"}
}

func (x clocks) measure(t *trial) {
	n := len(clockErrors) * ledByEach
	c := t.team(plan{name: "clocks", members: len(clockErrors), elections: n,
		lease: pick(t.bench, x.lease), mode: x.mode, ask: asking.ByTerm, wall: clockErrors})
	c.share()
	mark := c.journal.Mark()
	c.sleep(3 * c.lease)
	steals, reads, wrong := 0, 0, 0
	for _, e := range c.journal.Since(mark) {
		switch {
		case e.What == leads && c.stolen(e):
			steals++
		case e.What == judged:
			reads++
			if e.Age > c.lease {
				wrong++
			}
		}
	}
	killed := c.killLeaders(c.members[2], c.members[3])
	stolen := none("elected while the leader lived", steals, n)
	stolen.others = x.others
	t.report(stolen,
		none("elected before the lease of a dead leader ended", early(killed), len(killed)),
		judgedLine("", c.book.Judge(), ""),
		measure{what: "control: reads by which a candidate that compares clocks would claim too early",
			value: fmt.Sprintf("%d of %d", wrong, reads), bound: "more than 0",
			verdict: figures.Safe(wrong > 0)})
}

// stolen reports whether a member was elected before the last leader's lease had ended. That is not
// the case if a living leader loses its lease on a busy machine.
func (c *team) stolen(e entry) bool {
	all := c.journal.Since(0)
	before, ok := crew.Last(all, func(o entry) bool {
		return o.What == leads && o.Election == e.Election && o.At < e.At
	})
	if !ok || before.who == e.who {
		return false
	}
	sent, err := lastSend(all, before.who, e)
	return err != nil || e.At < sent+int64(c.lease)
}

// share makes each member lead its part of the elections, and then follow in the others.
func (c *team) share() {
	all := c.role.Elections
	for i, m := range c.members {
		c.role.Elections = all[i*ledByEach : (i+1)*ledByEach]
		c.lead(m)
	}
	for i, m := range c.members {
		c.role.Elections = slices.Concat(all[:i*ledByEach], all[(i+1)*ledByEach:])
		c.follow(m)
	}
	c.role.Elections = all
}
