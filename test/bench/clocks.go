package main

import (
	"fmt"
	"slices"
	"time"

	"github.com/tenure-go/tenure/test/internal/asking"
	"github.com/tenure-go/tenure/test/internal/figures"
)

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
	c := t.crew(plan{name: "clocks", members: len(clockErrors), elections: n,
		lease: pick(t.bench, x.lease), mode: x.mode, ask: asking.ByTerm, wall: clockErrors})
	c.share()
	mark := c.journal.mark()
	c.sleep(3 * c.lease)
	steals, reads, wrong := 0, 0, 0
	for _, e := range c.journal.since(mark) {
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
func (c *crew) stolen(e entry) bool {
	all := c.journal.since(0)
	before, ok := last(all, func(o entry) bool {
		return o.What == leads && o.Election == e.Election && o.At < e.At
	})
	if !ok || before.who == e.who {
		return false
	}
	sent, err := lastSend(all, before.who, e)
	return err != nil || e.At < sent+int64(c.lease)
}

// share makes each member lead its part of the elections, and then follow in the others.
func (c *crew) share() {
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
