package main

import (
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/tenure-go/tenure/internal/crew"
	"github.com/tenure-go/tenure/internal/witness"
	"github.com/tenure-go/tenure/test/internal/asking"
	"github.com/tenure-go/tenure/test/internal/natsd"
	"github.com/tenure-go/tenure/test/internal/relay"
	"github.com/tenure-go/tenure/test/internal/rig"
)

// plan holds the number and the settings of the members of a team.
type plan struct {
	name               string
	members, elections int
	lease              time.Duration
	mode               mode
	ask                asking.Way
	quiet              bool            // writes are not reported
	relayed            bool            // each member connects through relays of its own
	wall               []time.Duration // the errors of the members' times of day, in turn
	servers            rig.Running     // ended with the trial; nil for the site's servers
}

// team holds the members of a plan, and their reports.
type team struct {
	*trial
	plan
	journal crew.Journal[entry]
	book    witness.Book
	members []*member
	hired   int
	role    command // how they campaign
}

// team starts members for a plan, and creates their bucket. The end of the trial kills them.
func (t *trial) team(p plan) *team {
	c := &team{trial: t, plan: p}
	c.name = t.unique(p.name)
	if c.servers == nil {
		c.servers = t.shared()
	} else {
		t.cleanup(c.servers.End)
	}
	c.role = command{Do: start, Bucket: c.name, Lease: p.lease, Ask: p.ask, Quiet: p.quiet,
		Session: pick(t.bench, p.mode.session)}
	for i := range p.elections {
		c.role.Elections = append(c.role.Elections, fmt.Sprintf("%s-%d", c.name, i))
	}
	if p.elections > 0 {
		check(c.servers.Create(t.ctx, c.name))
	}
	t.cleanup(func() {
		for _, m := range c.members {
			m.kill()
		}
	})
	c.hire(p.members)
	return c
}

// hire adds members and waits until they are connected.
func (c *team) hire(n int) {
	for range n {
		addresses := c.servers.Addresses()
		first := c.hired % len(addresses)
		me := identity{Site: slices.Index(sites(), c.site), Mode: c.mode.name, Judge: len(c.wall) > 0}
		// Each member connects to a different server first.
		me.ID, me.Addresses = c.unique(c.name), slices.Concat(addresses[first:], addresses[:first])
		if me.Judge {
			me.Wall = c.wall[c.hired%len(c.wall)]
		}
		c.hired++
		m := hire(me, c.relayed, func(r report) { c.hear(me.ID, r) })
		c.members = append(c.members, m)
		c.heard(0, m, connected)
	}
}

// hear adds a report to the journal, or to the book if it has answers: there are very many.
func (c *team) hear(who string, r report) {
	if r.What == acted {
		c.book.Add(r.Election, who, r.Token, r.Acts...)
		return
	}
	c.journal.Add(entry{who, r})
	if r.What == failed {
		c.journal.Fail(fmt.Errorf("%s: %s", who, r.Error))
	}
}

// kill kills a member and removes it from the team.
func (c *team) kill(m *member) {
	c.members = slices.DeleteFunc(c.members, func(o *member) bool { return o == m })
	m.kill()
}

// tell sends a command to all members, or to those given.
func (c *team) tell(what command, to ...*member) {
	if len(to) == 0 {
		to = c.members
	}
	for _, m := range to {
		check(m.Send(what))
	}
}

// join makes members campaign, and waits until each has read the record of every election.
func (c *team) join(who ...*member) {
	mark := c.journal.Mark()
	c.tell(c.role, who...)
	for _, m := range who {
		c.heardForAll(mark, m, following)
	}
}

// lead makes a member lead the team's elections. No other member may campaign yet.
func (c *team) lead(m *member) {
	mark := c.journal.Mark()
	c.role.Spread = c.role.Lease / 3
	c.join(m)
	c.heardForAll(mark, m, leads)
}

// follow makes members join at random times within a lease.
func (c *team) follow(who ...*member) {
	c.role.Spread = c.role.Lease
	c.join(who...)
	c.sleep(settle)
}

// electFirst makes the first member lead all elections, and the others follow. The elections are
// renewed and polled at different times.
func (c *team) electFirst() *member {
	c.lead(c.members[0])
	c.follow(c.members[1:]...)
	c.role.Spread = 0
	c.rest()
	return c.members[0]
}

// rest waits until watches are set up: then members that have just joined learn of changes at once.
func (c *team) rest() { c.sleep(watchSetUp + c.mode.rest + c.role.Session/5) }

// rejoin waits until a member has stopped, and makes it campaign again.
func (c *team) rejoin(mark int, m *member) {
	c.heard(mark, m, stopped)
	c.join(m)
	c.rest()
}

// await waits for an entry after the mark that matches.
func (c *team) await(mark int, what string, match func(entry) bool) entry {
	return must(c.journal.Await(c.ctx, mark, what+" in "+c.name, match))
}

// heard waits for a report of one member, or of any member if m is nil.
func (c *team) heard(mark int, m *member, w what) entry {
	return c.await(mark, string(w), by(m, w))
}

// heardForAll waits for such a report for every election.
func (c *team) heardForAll(mark int, m *member, w what) {
	c.firsts(mark, c.role.Elections, by(m, w))
}

func by(m *member, w what) func(entry) bool {
	return func(e entry) bool { return e.What == w && (m == nil || e.who == m.id) }
}

// successors waits until members other than these lead the elections.
func (c *team) successors(mark int, elections []string, of ...*member) []entry {
	return c.firsts(mark, elections, func(e entry) bool {
		return e.What == leads && !slices.ContainsFunc(of, func(m *member) bool { return m.id == e.who })
	})
}

// firsts waits for the first entry of each election that matches.
func (c *team) firsts(mark int, elections []string, match func(entry) bool) (found []entry) {
	missing := map[string]bool{}
	for _, name := range elections {
		missing[name] = true
	}
	if len(missing) == 0 {
		return nil
	}
	c.await(mark, "the elections", func(e entry) bool {
		if missing[e.Election] && match(e) {
			delete(missing, e.Election)
			found = append(found, e)
		}
		return len(missing) == 0
	})
	return found
}

func (c *team) member(id string) *member {
	for _, m := range c.members {
		if m.id == id {
			return m
		}
	}
	return nil
}

// lastElected returns the member that was elected last.
func (c *team) lastElected() *member {
	e, _ := crew.Last(c.journal.Since(0), func(e entry) bool { return e.What == leads })
	return c.member(e.who)
}

// ledBy returns those of the team's elections for which one of these members was elected last.
func (c *team) ledBy(who ...*member) (led []string) {
	leaders := map[string]string{}
	for _, e := range c.journal.Since(0) {
		if e.What == leads {
			leaders[e.Election] = e.who
		}
	}
	for _, name := range c.role.Elections {
		if slices.ContainsFunc(who, func(m *member) bool { return m.id == leaders[name] }) {
			led = append(led, name)
		}
	}
	return led
}

// counter begins to count the requests of the members.
func (c *team) counter() func() []counts {
	if s, ok := c.servers.(natsd.Running); ok {
		return countMessages(c, s)
	}
	return func() (all []counts) {
		for _, u := range c.usages(tally) {
			all = append(all, u.Requests)
		}
		return all
	}
}

// usages asks all members at once.
func (c *team) usages(how do) (all []usage) {
	mark := c.journal.Mark()
	c.tell(command{Do: how})
	for _, m := range c.members {
		all = append(all, *c.heard(mark, m, used).Usage)
	}
	return all
}

const (
	// settle is the time for reports to arrive that the bench does not wait for.
	settle = 100 * time.Millisecond
	// watchSetUp is the time for a watch to be set up, which happens during the first read.
	watchSetUp = 20 * time.Millisecond
)

// member is a candidate's process, as the bench sees it.
type member struct {
	*crew.Process
	id     string
	relays relay.Set // empty if it is connected directly
}

// hire starts a process, and calls hear with each of its reports.
func hire(me identity, relayed bool, hear func(report)) *member {
	m := &member{id: me.ID}
	if relayed {
		m.relays = must(relay.NewSet(me.Addresses))
		me.Via = m.relays.Via()
	}
	cmd := crew.Self()
	cmd.Env = append(os.Environ(), workerVariable+"=1")
	m.Process = must(crew.Hire(cmd, me, hear, func(line string) { fmt.Fprintln(os.Stderr, line) }))
	return m
}

// kill sends SIGKILL, and returns when all reports of the process have been heard.
func (m *member) kill() {
	_ = m.Kill()
	<-m.Ended()
	m.relays.Close()
}

// entry is a report of a member.
type entry struct {
	who string
	report
}
