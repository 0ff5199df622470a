package main

import (
	"strconv"
	"time"

	"github.com/tenure-go/tenure/clock"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/internal/protocol"
	"github.com/tenure-go/tenure/internal/record"
)

// elder is a candidate of an older system on the same cell. Its records have no term and state no
// bound. It replaces a record that it has seen for a whole lease. Its clocks keep the smallest
// bound, so its wait is long enough. It leads as long as a leader with that bound may.
type elder struct {
	w      *world
	proc   process
	seen   driver.Version
	since  clock.Instant
	held   clock.Instant // when the last applied write was sent
	leads  bool
	writes int
}

const elderName = "elder"

// startElder starts the elder, if this run has one.
func (w *world) startElder() {
	if !w.plan.elders {
		return
	}
	e := &elder{w: w, proc: process{clocks: &machineClocks{}, bound: drift}}
	e.proc.clocks.reading = w.origin()
	w.retune(&e.proc)
	w.elder = e
	w.every(true, 2*time.Minute, func() { w.retune(&e.proc) })
	w.every(true, 8*w.plan.lease, func() { e.proc.cutUntil = w.now + w.extra.span(2*w.plan.lease) })
	w.queue.add(w.extra.span(w.plan.lease), e.look)
}

func (e *elder) now() clock.Instant { return e.proc.clocks.at(e.w.now).Instant }

// holds reports whether the elder may act.
func (e *elder) holds() bool {
	cfg := protocol.Config{Lease: e.w.plan.lease}
	cfg.Promise(drift, protocol.TimerLateness(cfg.Lease), 0)
	return e.leads && cfg.Budget > e.now().LeaderSince(e.held)
}

// look reads the cell, acts on it, and does so again after each poll interval.
func (e *elder) look() {
	w := e.w
	if w.calm {
		return
	}
	w.queue.add(w.now+w.plan.poll*9/10+w.extra.span(w.plan.poll/5), e.look)
	if e.proc.cutUntil > w.now {
		return
	}
	c := w.store.cell
	w.queue.add(w.now+w.plan.latency, func() { e.consider(&c) })
}

func (e *elder) consider(c *protocol.Cell) {
	mine := c.Record.Incarnation == elderName
	if c.Version != e.seen {
		e.seen, e.since = c.Version, e.now()
	}
	e.leads = e.leads && mine
	switch {
	case c.Kind != protocol.Valid || !c.Record.Held():
	case mine && e.holds() && e.w.extra.chance(0.9):
		e.write(c)
	case !mine && e.now().FollowerSince(e.since) >= e.w.plan.lease:
		e.write(c)
	}
}

// write replaces the cell if it is still as it was seen.
func (e *elder) write(c *protocol.Cell) {
	w, sent, prev := e.w, e.now(), c.Version
	w.queue.add(w.now+w.plan.latency, func() {
		if w.calm || w.store.cell.Version != prev {
			return
		}
		e.writes++
		r := record.Record{LeaderID: elderName, Incarnation: elderName, Lease: w.plan.lease, Nonce: "elder " + strconv.Itoa(e.writes)}
		w.tracef(nil, "the elder writes over version %s", prev)
		w.hinderAll()
		w.store.count(&r)
		w.store.place(protocol.Cell{Kind: protocol.Valid, Record: r, Version: w.store.version(&r)})
		e.leads, e.held = true, sent
	})
}
