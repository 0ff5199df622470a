package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/schedule/internal/ticks"
)

// node is one member: a process that restarts, with a wall clock that is off. It does what package
// schedule does around a Job.
type node struct {
	w         *world
	id        string
	life      int // counts the processes
	bornAt    time.Time
	offset    time.Duration // of the wall clock
	down      time.Time     // until when the process is gone
	paused    time.Time     // until when it stands still
	disturbed time.Time
	job       *ticks.Job
	term      *term
	passing   bool // a read or write is under way
	wakes     int  // numbers the wake-ups of loop; only the last one has an effect
	failures  int
	run       *runOf
}

func (n *node) setClock() {
	if n.offset < time.Minute {
		n.offset = n.w.between(-n.w.plan.apart, n.w.plan.apart)
	}
}

func (n *node) boot() {
	p := n.w.plan
	n.bornAt, n.disturbed, n.passing, n.term = n.w.now, time.Time{}, false, nil
	n.job = ticks.New(ticks.Policy{
		Plan: p.cal.String(), Next: p.cal.Next, AtLeastOnce: p.atLeastOnce, CatchUp: p.catchUp, Queue: p.queue,
		Window: p.window, ClockOffset: p.apart, Needs: p.needs, Nonce: n.nonce,
	})
}

func (n *node) nonce() string {
	n.w.nonces++
	return fmt.Sprint("n", n.w.nonces)
}

func (n *node) wall() time.Time { return n.w.now.Add(n.offset) }
func (n *node) away() bool      { return n.w.now.Before(n.down) || n.w.now.Before(n.paused) }
func (n *node) busy() bool      { return n.run != nil }

// act calls do if the process still lives, once it goes on.
func (n *node) act(life int, do func()) {
	if n.life != life {
		return
	}
	if n.away() {
		n.w.after(max(n.paused.Sub(n.w.now), n.down.Sub(n.w.now))+time.Millisecond, func() { n.act(life, do) })
		return
	}
	do()
}

func (n *node) later(d time.Duration, do func()) {
	life := n.life
	n.w.after(d, func() { n.act(life, do) })
}

// lead begins the work of a term.
func (n *node) lead(t *term) {
	n.term = t
	n.job.Begin(n.wall(), ticks.Term{Token: t.token, ID: n.id, Lead: fmt.Sprint(n.id, "-", n.life, "-", t.token, "-", n.w.serial)})
	n.loop(t)
}

// loop wakes when the next tick is due, and at least every 30 s, since clocks may step.
func (n *node) loop(t *term) {
	if n.term != t || !n.w.valid(t) {
		return
	}
	next := n.job.Wake(n.wall())
	switch {
	case n.passing:
	case !next.IsZero() && !n.wall().Before(next):
		n.pass(t)
		return
	}
	d := 30 * time.Second
	if !next.IsZero() {
		d = min(d, next.Sub(n.wall()))
	}
	n.loopLater(max(d, time.Millisecond)+n.w.between(0, 20*time.Millisecond), t)
}

// loopLater calls loop after a time, unless it is called again before.
func (n *node) loopLater(d time.Duration, t *term) {
	n.wakes++
	own := n.wakes
	n.later(d, func() {
		if own == n.wakes {
			n.loop(t)
		}
	})
}

// pass is one read and one write.
func (n *node) pass(t *term) {
	n.passing = true
	began := n.w.now
	var read driver.Entry
	n.w.call(n, func() error { read = n.w.store.read(); return nil }, func(err error) {
		if err != nil {
			n.settle(t, err)
			return
		}
		e := read
		value, err := n.job.Decide(e, n.facts(t))
		if err == nil && n.w.now.Sub(began) >= n.w.plan.lease/3 {
			err = errTimeout // it stood still in between
		}
		if err != nil {
			n.settle(t, err)
			return
		}
		if n.w.plan.pauses && n.w.chance(0.002) {
			n.paused = n.w.now.Add(n.w.between(0, 2*n.w.plan.lease))
			n.w.expire(0)
		}
		n.w.call(n, func() error { return n.w.store.swap(e.Version, value) }, func(err error) { n.settle(t, err) })
	})
}

func (n *node) facts(t *term) ticks.Facts {
	return ticks.Facts{Now: n.wall(), Live: n.live(t), Lease: n.w.plan.lease, Disturbed: n.disturbed}
}

func (n *node) live(t *term) ticks.Live {
	return ticks.Live{Lost: !n.w.valid(t), Asked: t.asked, Remaining: n.w.remaining(t)}
}

func (n *node) settle(t *term, err error) {
	n.passing = false
	n.failures++
	if err == nil || errors.Is(err, ticks.ErrUnchanged) || conflict(err) {
		n.failures = 0
	} else if n.failures > 1 {
		n.w.trouble(0)
	}
	r := n.job.Settle(n.wall(), err)
	for _, e := range r.Events {
		n.w.tracef("%s: %s %s %d %s", n.id, e.Kind, e.Planned.Format(time.TimeOnly), e.Count, e.Reason)
	}
	if r.Start {
		n.start(t)
	}
	d := time.Duration(0)
	if err != nil && !errors.Is(err, ticks.ErrUnchanged) && !r.Again {
		d = 100 * time.Millisecond
	}
	if conflict(err) {
		d = 20 * time.Millisecond
	}
	n.loopLater(d, t)
}

func (n *node) start(t *term) {
	tick, ok := n.job.Start(n.wall(), n.live(t))
	if !ok {
		n.w.tracef("%s does not start after all", n.id)
		return
	}
	d := time.Duration(float64(n.w.plan.run) * n.w.rand.ExpFloat64())
	r := &runOf{tick: tick, node: n, term: t, began: n.w.now, wall: n.wall()}
	n.run = r
	n.w.check.starts(r)
	failed := n.w.chance(0.1)
	n.later(d, func() {
		if n.run != r {
			return
		}
		n.run = nil
		n.w.check.ends(r, true)
		n.job.End(n.wall(), failed, 0, "")
		n.loop(t)
	})
}

// stopRun ends the run because of its guard.
func (n *node) stopRun(why string) {
	r := n.run
	if r == nil {
		return
	}
	n.run = nil
	n.w.tracef("%s: the run of %s is stopped: %s", n.id, r.tick.Planned.Format(time.TimeOnly), why)
	n.w.check.ends(r, false)
	n.job.Abandon()
}

// runOf is one run of a tick, as the witness sees it.
type runOf struct {
	tick  ticks.Tick
	node  *node
	term  *term
	began time.Time
	ended time.Time
	wall  time.Time // when it began, by the node's clock
}
