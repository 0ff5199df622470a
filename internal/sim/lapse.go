package main

import (
	"time"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/internal/protocol"
	"github.com/tenure-go/tenure/internal/record"
)

// Work that a leader recorded beside the election goes by Machine.HistoryChanged. So a member that
// knew the last state, and is the first to write over an older one, must have noticed the change.

// lapse is such a change: the cell holds an older state, or one of another era.
type lapse struct {
	at      time.Duration
	version driver.Version
	knew    map[string]bool // the incarnations that knew the last state
}

// lapse is called before the cell changes, and its result after it. Only records with a holder
// count: other states recur, or may be new.
func (c *check) lapse() (after func()) {
	before, knew := c.w.store.cell, map[string]bool{}
	for _, n := range c.w.nodes {
		knew[n.incarnation()] = n.alive && c.knows(n)
	}
	return func() {
		cell := &c.w.store.cell
		was, is := &before.Record, &cell.Record
		older := is.Term < was.Term || is.Term == was.Term && is.Seq < was.Seq
		held := before.Kind == protocol.Valid && cell.Kind == protocol.Valid && was.LeaderID != "" && is.LeaderID != ""
		if held && (older || c.w.store.inherited(cell)) {
			c.lapsed = &lapse{c.w.now, cell.Version, knew}
		}
	}
}

// notices checks a write over a state.
func (c *check) notices(old *protocol.Cell, r *record.Record) {
	l, p := c.lapsed, &c.w.plan
	switch {
	case l == nil || old.Version != l.version:
		return
	case p.remakes || p.loses: // versions recur, so the write may be from before the change
		return
	case p.peers: // it may know the last state from a push of the leader alone
		return
	}
	c.lapsed = nil
	n := c.w.find(r.Incarnation)
	if n != nil && n.alive && l.knew[r.Incarnation] && n.m.HistoryChanged().Time().Before(epoch.Add(l.at)) {
		c.failf("%s writes over a state of a lost history, and did not notice the change", r.Incarnation)
	}
}
