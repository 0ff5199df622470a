package main

import (
	"fmt"
	"time"

	"github.com/tenure-go/tenure/internal/clock"
	"github.com/tenure-go/tenure/internal/protocol"
)

// process is what two elections of one program share: its machine's clocks, and being stopped.
type process struct {
	clocks     *machineClocks
	stillUntil time.Duration // nothing happens in it before
	cutUntil   time.Duration // it does not reach the store before
	// excusedUntil: it was frozen with all its clocks, which no lease can see; until then what it believes may be as old.
	excusedUntil time.Duration
}

// node is one member: a machine, the thin runner around it, and the work that it guards.
type node struct {
	w     *world
	name  string
	index int
	proc  *process
	m     *protocol.Machine
	lives int // how often it was started; what belongs to an earlier life is not heard
	alive bool
	ticks int // the number of the armed timer; earlier ones are stale
	timed bool
	wake  time.Duration // when it rings, on the monotonic clock, as timers do

	// The work. working spans from the election to the moment when the work has stopped.
	working bool
	term    uint64
	doubted uint64
	// stalled: the process was stopped across its deadline, or timers stood still while the deadline came nearer, so the
	// work learns of it late unless it asks; only the token helps.
	stalled bool
	// leftover is the term of work that panicked: parts of it may run for ever.
	leftover uint64
	// busyUntil is when the act that is under way will be done; work does not stop in the middle of one.
	busyUntil time.Duration
}

func (n *node) incarnation() string { return fmt.Sprintf("%s#%d.%d", n.name, n.index, n.lives) }

func (n *node) now() clock.Reading { return n.proc.clocks.at(n.w.now) }

// boot starts the process anew: all that it knew is gone.
func (n *node) boot() {
	if still := n.proc.stillUntil; still > n.w.now {
		n.w.queue.add(still, n.boot)
		return
	}
	if n.alive {
		return
	}
	n.lives++
	n.alive, n.working, n.leftover, n.timed = true, false, 0, false
	n.m = protocol.New(n.w.config(n))
	n.m.Watching(n.w.plan.watch)
	n.w.tracef(n, "starts as %s", n.incarnation())
	n.m.Campaign(n.now(), 0)
	n.pump()
}

func (n *node) kill() {
	n.w.tracef(n, "is killed")
	n.alive, n.working = false, false
}

// later runs something in this life of this node, when its process is not stopped.
func (n *node) later(d time.Duration, do func()) {
	life := n.lives
	n.w.queue.add(n.w.now+d, func() { n.run(life, do) })
}

func (n *node) run(life int, do func()) {
	if !n.alive || n.lives != life {
		return
	}
	if still := n.proc.stillUntil; still > n.w.now {
		n.w.queue.add(still, func() { n.run(life, do) })
		return
	}
	do()
}

// pump carries out what the machine wants: the whole of a runner.
func (n *node) pump() {
	todo := n.m.Next(n.now())
	for _, t := range todo.Transitions {
		n.transition(t)
	}
	if todo.Op != nil {
		n.send(*todo.Op)
	}
	if n.m.Holds(n.now()) {
		n.stalled = false // the timer that is armed now is right again
	}
	n.timed, n.wake = todo.Timed, n.now().Mono+todo.Wake
	n.arm()
}

// arm sets the timer, which rings late by up to half of what the margin has for that.
func (n *node) arm() {
	n.ticks++
	if !n.timed {
		return
	}
	number := n.ticks
	late := n.w.rng.Int64N(int64(protocol.TimerLateness(n.w.plan.lease) / 2))
	left := float64(n.wake-n.now().Mono) / n.proc.clocks.mono
	n.later(time.Duration(max(left, 0))+time.Duration(late)+time.Microsecond, func() {
		if n.ticks == number {
			n.m.Tick(n.now())
			n.pump()
		}
	})
}

// resume is the moment in which the process goes on after it was stopped, or after its machine was suspended.
func (n *node) resume(suspended bool) {
	if n.alive && n.working && (suspended || !n.m.Holds(n.now())) {
		n.stalled = true
	}
}

func (n *node) transition(t protocol.Transition) {
	w := n.w
	if w.verbose && t.What != protocol.NewLeader {
		w.tracef(n, "%s term %d %v", names[t.What], t.Term, t.Cause)
	}
	switch t.What {
	case protocol.Elected:
		w.check.elected(n, t.Term)
		n.working, n.term, n.stalled = true, t.Term, false
		w.stats.terms++
		n.act(n.lives, t.Term)
		n.career(t.Term)
	case protocol.Lost:
		n.later(w.span(w.plan.stopWithin), func() { n.finish(t.Term) })
	case protocol.Leaving:
		n.later(n.patience(), func() { n.finish(t.Term) })
	}
}

// career is how a term may end by the will, or the fault, of the work itself.
func (n *node) career(term uint64) {
	w := n.w
	switch {
	case w.calm:
	case w.plan.yield:
		n.later(w.span(3*w.plan.lease), func() { n.finish(term) })
	case w.plan.panics && w.chance(0.3):
		n.later(w.span(3*w.plan.lease), func() { n.panic(term) })
	}
}

// panic ends the work as a panic does: parts of it may go on, so nothing may ever be released.
func (n *node) panic(term uint64) {
	if !n.working || n.term != term {
		return
	}
	n.w.tracef(n, "panics")
	n.working, n.leftover = false, term
	n.m.Abandon(n.now())
	n.pump()
}

// patience is how long the work takes to finish when asked to; some never listens until it must.
func (n *node) patience() time.Duration {
	if n.w.plan.overstay && !n.w.calm && n.w.chance(0.3) {
		return 2 * n.w.plan.finishWithin
	}
	return n.w.span(n.w.plan.finishWithin / 2)
}

// finish: the work has stopped, and Run campaigns again.
func (n *node) finish(term uint64) {
	if !n.working || n.term != term {
		return
	}
	if left := n.busyUntil - n.w.now; left > 0 {
		n.later(left, func() { n.finish(term) })
		return
	}
	n.working = false
	n.m.Finish(n.now(), "", true, 0)
	n.pump()
}

// act is what the work does all the time: it asks whether it may, and a moment later it acts on some resource.
func (n *node) act(life int, term uint64) {
	w := n.w
	n.later(w.span(w.plan.lease/2), func() {
		if !n.working || n.term != term {
			return
		}
		left, err := n.m.Remaining(n.now(), term)
		n.w.check.answer(n, term, err == nil)
		n.pump()
		if err == nil {
			n.commit(life, term, left)
		}
		if n.working && n.term == term {
			n.act(life, term)
		}
	})
}

// commit is the act itself. It comes within the reserve that the user asked for, unless the process is stopped between
// the question and the act; then only the token helps.
func (n *node) commit(life int, term uint64, left time.Duration) {
	reserve := n.w.span(n.w.plan.stopWithin + protocol.TimerLateness(n.w.plan.lease))
	at := n.w.now + reserve
	n.busyUntil = max(n.busyUntil, at)
	n.w.queue.add(at, func() {
		n.run(life, func() { n.w.check.act(n, term, n.w.now == at, left) })
	})
}
