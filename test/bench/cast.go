package main

import (
	"fmt"
	"slices"
	"time"

	acts "github.com/tenure-go/tenure/internal/witness"
)

// cast is a number of workers that play one scene, and what they said.
type cast struct {
	b       *bench
	name    string
	journal *journal
	book    acts.Book
	members []*member
	hired   int
	relayed bool    // each through a relay of its own
	counted bool    // each through a proxy of its own that counts
	role    command // how they campaign
	// ready is how long after its first read a member may not yet be told of changes.
	ready time.Duration
	as    identity        // what all are told
	on    *replicas       // nil: not a cluster of NATS
	urls  []string        // where they connect, in turn, if that is not the same for all
	wall  []time.Duration // how wrong their times of day are, in turn
	// coordinator is which of the brokers coordinates the group of the first election, from 0.
	coordinator int
}

// cast hires n workers under a common name. They are dismissed by dismiss, whatever happens.
func (b *bench) cast(name string, n int, role command) (*cast, error) {
	c := &cast{b: b, name: name, journal: newJournal(), role: role, ready: watchSetUp, as: identity{URL: b.server.URL()}}
	return c, c.hire(n)
}

// relayedCast is a cast whose connections can be cut one by one.
func (b *bench) relayedCast(name string, n int, role command) (*cast, error) {
	c := &cast{b: b, name: name, journal: newJournal(), role: role, ready: watchSetUp, as: identity{URL: b.server.URL()}, relayed: true}
	return c, c.hire(n)
}

// hire adds n workers and waits until they are connected.
func (c *cast) hire(n int) error {
	for range n {
		m, err := c.hireOne()
		if err != nil {
			return err
		}
		c.members = append(c.members, m)
		if _, err := c.await(0, m, connected); err != nil {
			return err
		}
	}
	return nil
}

func (c *cast) hireOne() (*member, error) {
	me := c.as
	me.ID = fmt.Sprintf("%s-%d", c.name, c.hired+1)
	if len(c.urls) > 0 {
		me.URL = c.urls[c.hired%len(c.urls)]
	}
	if len(c.wall) > 0 {
		me.Wall = c.wall[c.hired%len(c.wall)]
	}
	c.hired++
	way, err := c.lay(&me)
	if err != nil {
		return nil, err
	}
	m, err := hire(me, func(r report) { c.hear(me.ID, r) })
	if err != nil {
		return nil, err
	}
	m.relay, m.counter = way.relay, way.counter
	return m, nil
}

// way is what stands between a member and the servers.
type way struct {
	relay   relays
	counter *counter
}

// lay builds it, and has the member go there.
func (c *cast) lay(me *identity) (w way, err error) {
	switch {
	case c.relayed:
		w.relay, err = relayAll(me)
	case c.counted:
		if w.counter, err = newCounter(me.URL); err == nil {
			me.URL = w.counter.url()
		}
	}
	return w, err
}

// hear keeps answers apart: there are very many.
func (c *cast) hear(who string, r report) {
	if r.What == acted {
		c.book.Add(r.Election, who, r.Token, r.Acts...)
		return
	}
	c.journal.add(entry{who, r})
}

func (c *cast) dismiss() {
	for _, m := range c.members {
		m.kill()
	}
	c.members = nil
}

// replace is for a member that was killed.
func (c *cast) replace(dead *member) error {
	c.members = slices.DeleteFunc(c.members, func(m *member) bool { return m == dead })
	mark := c.journal.mark()
	if err := c.hire(1); err != nil {
		return err
	}
	return c.join(mark, c.members[len(c.members)-1])
}

// tell tells all members, or those given.
func (c *cast) tell(what command, to ...*member) error {
	if len(to) == 0 {
		to = c.members
	}
	for _, m := range to {
		if err := m.tell(what); err != nil {
			return fmt.Errorf("%s: %w", m.id, err)
		}
	}
	return nil
}

// join lets members campaign, in the cast's role, and waits until each knows the record of every election.
func (c *cast) join(mark int, who ...*member) error {
	if err := c.tell(c.role, who...); err != nil {
		return err
	}
	for _, m := range who {
		if err := c.awaitAll(mark, m, following); err != nil {
			return err
		}
	}
	return nil
}

// halt ends the campaigns of all.
func (c *cast) halt() error {
	mark := c.journal.mark()
	if err := c.tell(command{Do: stop}); err != nil {
		return err
	}
	for _, m := range c.members {
		if _, err := c.await(mark, m, stopped); err != nil {
			return err
		}
	}
	return nil
}

// await waits for a report of one member, or of any if it is nil.
func (c *cast) await(mark int, m *member, w what) (entry, error) {
	return c.journal.await(c.b.ctx, mark, fmt.Sprintf("%q in %s", w, c.name), func(e entry) bool {
		return e.What == w && (m == nil || e.who == m.id)
	})
}

// awaitAll waits for a report of one member, or of any, for every election.
func (c *cast) awaitAll(mark int, m *member, w what) error {
	missing := map[string]bool{}
	for _, name := range c.role.Elections {
		missing[name] = true
	}
	_, err := c.journal.await(c.b.ctx, mark, fmt.Sprintf("%q for all in %s", w, c.name), func(e entry) bool {
		if e.What == w && (m == nil || e.who == m.id) {
			delete(missing, e.Election)
		}
		return len(missing) == 0
	})
	return err
}

// successor waits for another leader than the one given.
func (c *cast) successor(mark int, of *member) (entry, *member, error) {
	e, err := c.journal.await(c.b.ctx, mark, "the next leader in "+c.name, func(e entry) bool {
		return e.What == leads && (of == nil || e.who != of.id)
	})
	if err != nil {
		return entry{}, nil, err
	}
	return e, c.member(e.who), nil
}

func (c *cast) member(id string) *member {
	for _, m := range c.members {
		if m.id == id {
			return m
		}
	}
	return nil
}

// present is who was elected last: a nominee may have asked for its turn meanwhile, or a lease have been lost on a busy machine.
func (c *cast) present() *member {
	all, _ := c.journal.since(0)
	e, _ := last(all, func(e entry) bool { return e.What == leads })
	return c.member(e.who)
}

// reign is the end of the journal when a member was last elected: who was elected after that is its successor, also where a busy
// machine had cost it the lease before anything was done to it.
func (c *cast) reign(of *member) int {
	all, _ := c.journal.since(0)
	for i, e := range slices.Backward(all) {
		if e.What == leads && e.who == of.id {
			return i + 1
		}
	}
	return 0
}

// ledBy are those of the elections for which one of these members was elected last.
func (c *cast) ledBy(elections []string, who ...*member) (led []string) {
	all, _ := c.journal.since(0)
	for _, name := range elections {
		e, _ := last(all, func(e entry) bool { return e.What == leads && e.Election == name })
		if slices.ContainsFunc(who, func(m *member) bool { return m.id == e.who }) {
			led = append(led, name)
		}
	}
	return led
}

const (
	// settle is a moment for news to arrive that nothing waits for.
	settle = 100 * time.Millisecond
	// watchSetUp is as much for a watch, which is set up beside the first read.
	watchSetUp = 20 * time.Millisecond
)
