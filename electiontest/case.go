package electiontest

import (
	"bytes"
	"errors"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/faults"
	"github.com/tenure-go/tenure/internal/record"
	"github.com/tenure-go/tenure/internal/test/kit"
)

func firstLeads(c *contest) {
	term := c.elect(c.candidate("a", c.Store))
	if err := term.Err(); err != nil || term.Token() == 0 {
		c.Errorf("just elected, token %d: %v", term.Token(), err)
	}
	if left := term.Remaining(); left > c.lease {
		c.Errorf("%v are left of a lease of %v", left, c.lease)
	}
	if l := c.sees(c.candidate("observer", c.other()), term); l.ID != "a" || l.Address != "a.example" {
		c.Errorf("an observer sees %+v", l)
	}
	c.resign(term)
	if err := term.Err(); !errors.Is(err, tenure.ErrReleased) {
		c.Errorf("after the release Err is %v", err)
	}
}

func othersWait(c *contest) {
	term := c.elect(c.candidate("a", c.Store))
	b := c.candidate("b", c.other())
	won := c.campaign(b)
	c.sees(b, term)
	renewals := c.renewed()
	c.until("seven renewals, in two leases and more", func() bool { return renewals() >= 7 })
	if err := term.Err(); err != nil {
		c.Errorf("after seven renewals: %v", err)
	}
	select {
	case next := <-won:
		c.Fatalf("term %d began after term %d", next.Token(), term.Token())
	default:
	}
}

// renewed counts the versions of the record, one more with each call that finds another one.
func (c *contest) renewed() func() int {
	last, n := c.read().Version, 0
	return func() int {
		if v := c.read().Version; v != last {
			last = v
			n++
		}
		return n
	}
}

func releasePassesOn(c *contest) {
	term := c.elect(c.candidate("a", c.Store))
	b := c.candidate("b", c.other())
	won := c.campaign(b)
	c.sees(b, term)
	c.resign(term)
	c.after(c.elected(b, won), term)
}

func requestIsHeard(c *contest) {
	term := c.elect(c.candidate("a", c.Store))
	b := c.candidate("b", c.other())
	won := c.campaign(b)
	c.sees(b, term)
	if err := b.HandOver(c.ctx, "b"); err != nil {
		c.Fatalf("the request: %v", err)
	}
	if cause := c.ended(term.Context(), "the context of the work"); !errors.Is(cause, tenure.ErrHandOver) {
		c.Errorf("the context of the work ended with %v", cause)
	}
	if err := term.Err(); err != nil {
		c.Errorf("the lease did not outlast the request: %v", err)
	}
	c.resign(term)
	c.after(c.elected(b, won), term)
}

// tokensGrow has a new candidate each time, which remembers nothing.
func tokensGrow(c *contest) {
	term := c.elect(c.candidate("a", c.Store))
	c.resign(term)
	again := func(id string) {
		c.Helper()
		next := c.elect(c.candidate(id, c.other()))
		c.after(next, term)
		c.resign(next)
		term = next
	}
	again("b")
	if c.read().Floor == 0 {
		c.Logf("no removal: the store vouches for no floor")
		return
	}
	for _, remove := range c.removals() {
		remove()
		again("c")
	}
}

func removalEndsTerm(c *contest) {
	removals := c.removals()
	if len(removals) == 0 {
		c.Skipf("the harness can neither delete nor purge")
	}
	a := c.candidate("a", c.Store)
	term := c.elect(a)
	for _, remove := range removals {
		remove()
		cause := c.ended(term.LeaseContext(), "the term of a removed record")
		if !errors.Is(cause, tenure.ErrLost) || errors.Is(cause, tenure.ErrExpired) {
			c.Errorf("the term ended with %v", cause)
		}
		_ = term.Resign(c.ctx) // there is nothing to be confirmed
		next := c.elect(a)
		c.after(next, term)
		term = next
	}
}

func foreignStays(c *contest) {
	mine := []byte("not an election's")
	v, err := c.Store.CompareAndSwap(c.ctx, c.election, c.read().Version, mine)
	if err != nil {
		c.Fatalf("write to %q: %v", c.election, err)
	}
	c.awaitCell("written", func(e driver.Entry) bool { return e.Version == v })
	l := newLine(c.Store)
	won := c.campaign(c.candidate("a", l))
	c.until("eight reads, in two leases and more", func() bool { return l.passed().reads >= 8 })
	select {
	case term := <-won:
		c.Errorf("term %d began", term.Token())
	default:
	}
	if n := l.passed().writes; n > 0 {
		c.Errorf("%d writes", n)
	}
	if e := c.read(); !bytes.Equal(e.Value, mine) {
		c.Errorf("the key holds %s instead of %s", kit.Brief(e.Value), kit.Brief(mine))
	}
}

// ownClaim harms a claim, which comes after a first term, as the first write of all may be no
// claim.
func ownClaim(harm faults.Fault) func(*contest) {
	return func(c *contest) {
		c.resign(c.elect(c.candidate("a", c.Store)))
		l := newLine(c.Store, harm)
		began := time.Now()
		term := c.elect(c.candidate("b", l))
		claim, err := record.Decode(l.passed().first)
		if err != nil || claim.Term != term.Token() {
			c.Errorf("term %d is of another claim than that of term %d (%v)", term.Token(), claim.Term, err)
			if time.Since(began) > c.lease/2 { // its lease may have run out before it was looked at
				c.stall()
			}
		}
	}
}

func silentIsReplaced(c *contest) {
	survivor, l := c.candidate("b", c.other()), newLine(c.Store)
	lost := c.elect(c.candidate("a", l))
	won := c.campaign(survivor)
	c.sees(survivor, lost)
	c.dooms(lost)
	l.Partition()
	term := c.elected(survivor, won)
	late := time.Since(l.passed().sent.Add(c.lease))
	switch err := lost.Err(); {
	case err == nil || late < 0:
		c.breach("elected %v after the end of a lease whose holder says: %v", late, err)
	case !errors.Is(err, tenure.ErrExpired):
		c.Errorf("a silent leader ended with %v", err)
	}
	c.after(term, lost)
	c.resign(term)
	l.Heal()
	_ = lost.Resign(c.ctx) // it is over
}
