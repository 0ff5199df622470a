package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/tenure-go/tenure/clock"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/internal/protocol"
	"github.com/tenure-go/tenure/internal/trace"
)

// process is the part that two elections of one program share: the clocks of the machine, and
// stops.
type process struct {
	clocks     *machineClocks
	bound      float64       // the bound that its clocks keep
	silent     bool          // its records do not state it
	stillUntil time.Duration // nothing happens in it before
	cutUntil   time.Duration // it does not reach the store before
	// excusedUntil: the machine was frozen with all its clocks, which no lease can notice. Until
	// then its knowledge may be that old.
	excusedUntil time.Duration
}

// node is one member: a machine, the thin runner around it, and the work that it guards.
type node struct {
	w     *world
	name  string
	index int
	life  string // see incarnation
	proc  *process
	m     *trace.Machine
	cfg   protocol.Config // its latest
	lives int             // how often it was started; answers to an earlier life are ignored
	// processes counts its processes. All lives within one get the pushes of its connection.
	processes int
	alive     bool
	ticks     int           // how often the timer was armed or disarmed
	timer     event         // rings next; without a function: disarmed
	late      time.Duration // the most by which a timer may ring late, as the margin allows
	timed     bool
	wake      time.Duration // when the armed timer rings, on the monotonic clock

	// The work. working lasts from the election to the moment when the work has stopped. inside
	// lasts to the return of its function, which may come later.
	working bool
	inside  bool
	term    uint64
	doubted uint64
	// stalled: the process was stopped across its deadline, or timers stood still while the
	// deadline came nearer. So the work learns of the end late unless it asks; only the token
	// helps.
	stalled bool
	// leftover is the term of work that panicked: parts of it may run without end.
	leftover uint64
	// busyUntil is when the act that is under way will be done; work does not stop in the middle of
	// one.
	busyUntil time.Duration
	former    uint64        // the previous term
	seen      uint64        // the highest term that this life was shown
	due       time.Duration // when the lease will be over
	withdrew  time.Duration // when it last ended its campaign
	straining bool          // it is cut off as soon as it has renewed (see strain)
	severing  bool          // the next renewal is the last that reaches the store for a while
	born      time.Duration // when this life began
	asked     time.Duration // when it last asked for a hand-over to itself
	sent      protocol.Op   // its last write, and when it was sent
	sentAt    time.Duration
	closing   time.Duration // since when it tries to release or withdraw

	nomination nomination
	fitness    fitness
	leaving    uint64 // the latest term that it was asked to finish
	dawdles    uint64 // the term whose work is slow to finish

	attempts      attempts
	hinderedUntil time.Duration // something was in the way between it and the store
	blind         bool          // its watch has ended for a while
	below         uint64        // a term that it won, lower than one that the store had lost
	wishes        wishes
	hasRead       driver.Version // the version in the latest answer to a read
	readAt        time.Duration  // when the store answered its latest read
	wrote         driver.Version // the version of its latest write that was applied
	wroteAt       time.Duration
	vanished      driver.Version // the absence that ended its last term
	vanishedAt    time.Duration
}

// incarnation names this life of the member.
func (n *node) incarnation() string { return n.life }

// begin gives the member a life.
func (n *node) begin(number int) {
	n.lives, n.life = number, fmt.Sprintf("%s#%d.%d", n.name, n.index, number)
}

// excused: its machine was frozen with its clocks, and may still act on the knowledge from then.
func (n *node) excused() bool { return n.w.now < n.proc.excusedUntil }

func (n *node) now() clock.Reading { return n.proc.clocks.at(n.w.now) }

// boot restarts the process, without its memory.
func (n *node) boot() {
	if still := n.proc.stillUntil; still > n.w.now {
		n.w.queue.add(still, n.boot)
		return
	}
	if !n.alive {
		n.processes++
		n.live()
	}
}

// rejoin campaigns with a new election in the same process.
func (n *node) rejoin() {
	if n.m.Phase() == protocol.Idle {
		n.live()
	}
}

// live begins a life, without memory of the one before.
func (n *node) live() {
	n.begin(n.lives + 1)
	n.alive, n.working, n.inside, n.timed, n.timer = true, false, false, false, event{}
	n.leftover, n.seen, n.term, n.doubted, n.asked = 0, 0, 0, 0, 0
	n.born, n.severing, n.straining = n.w.now, false, false
	n.attempts, n.wishes, n.vanished = attempts{}, wishes{}, ""
	cfg := n.w.configure(n, n.w.someLease())
	n.cfg = cfg
	m := trace.New(&cfg, n.incarnation(), "simulation", n.w.cfg.trace)
	n.m, n.late = &m, protocol.TimerLateness(cfg.Lease)
	n.m.Watching(n.w.plan.watch)
	n.blind = false
	n.nomination = nomination{named: n.nomination.named}
	n.fitness, n.leaving = fitness{unfit: n.fitness.unfit}, 0
	n.w.check.joined()
	n.w.tracef(n, "starts as %s", n.incarnation())
	n.hear()
	n.declare()
	n.campaign()
}

func (n *node) campaign() {
	n.m.Campaign(n.now(), 0)
	n.pump()
}

func (n *node) kill() {
	n.w.tracef(n, "is killed")
	n.alive, n.working, n.inside = false, false, false
}

// later runs a function after d, unless the node has restarted by then. If its process is stopped,
// the function runs when the process continues.
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

// pump carries out the machine's decisions, as a runner does.
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
	n.w.check.closing(n)
	n.timed, n.wake = todo.Timed, n.now().Mono+todo.Wake
	n.arm()
}

// arm sets the timer, in place of the one before. It rings late by up to 60 % of the time that the
// margin allows for that. The rest is for slewed clocks.
func (n *node) arm() {
	n.foresee()
	n.ticks++
	n.timer = event{}
	if !n.timed {
		return
	}
	late := n.w.span(n.late * 6 / 10)
	left := float64(n.wake-n.now().Mono) / n.proc.clocks.mono
	at := n.w.now + time.Duration(max(left, 0)) + late + time.Microsecond
	n.timer = event{at, n.w.queue.next(), n.ring}
}

// ring lets the timer ring; for a process that is stopped, when it continues.
func (n *node) ring() {
	number := n.ticks
	n.run(n.lives, func() {
		if n.ticks == number {
			n.m.Tick(n.now())
			n.pump()
		}
	})
}

// foresee computes when the lease will be over if clocks keep their rates.
func (n *node) foresee() {
	if !n.working || !n.m.Holds(n.now()) {
		return
	}
	c := n.proc.clocks
	if left, err := n.m.Remaining(n.now(), n.term); err == nil {
		n.due = n.w.now + time.Duration(float64(left)/max(c.mono, c.raw))
	}
}

// resume continues the process after it was stopped, or after its machine was suspended.
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
		w.check.election(n, t.Term)
		n.working, n.inside, n.stalled = true, true, false
		n.former, n.term = n.term, t.Term
		n.serveAsNominee()
		if w.plan.bounds && !w.calm && w.extra.chance(0.2) {
			w.strain()
		}
		if w.chance(0.7) { // other work never asks, and relies on its context
			n.act(n.lives, t.Term, w.plan.lease/2)
		}
		n.career(t.Term)
	case protocol.Lost:
		w.check.lost(n, t)
		n.lose(t.Cause)
		n.later(w.span(w.plan.stopWithin), func() { n.stop(t.Term) })
	case protocol.Alarm:
		w.check.alarm(n, t)
	case protocol.Asking:
		w.check.asking(n)
		n.later(w.plan.latency, func() { w.store.requestOf(t, n.name) })
	case protocol.Withdrawn:
		n.withdrew = w.now
		n.forgetTerm()
		w.check.withdrawn(n)
		again := n.campaign
		if w.rejoins.chance(0.3) && n.leftover == 0 {
			again = n.rejoin
		}
		n.later(w.span(w.plan.lease), again)
	case protocol.Candidacy:
		n.forgetTerm()
	case protocol.Leaving:
		w.check.leaves(n, t)
		n.leaving = t.Term
		n.later(n.patience(), func() { n.finish(t.Term) })
	}
}

// lose notes what a member must still do after it lost its term.
func (n *node) lose(why error) {
	n.wishes, n.vanished = wishes{}, ""
	if c, _ := n.m.InView(); errors.Is(why, protocol.ErrVanished) && c.Kind == protocol.Absent {
		n.vanished, n.vanishedAt = c.Version, n.w.now
	}
}

// forgetTerm forgets the previous term.
func (n *node) forgetTerm() {
	n.w.check.leavesAbsence(n)
	n.wishes, n.vanished = wishes{}, ""
	n.attempts.flight.on, n.attempts.campaignedAt = false, n.w.now
}

// shown returns the cell as it was last shown to n.
func (n *node) shown() protocol.Cell {
	c, _ := n.m.InView()
	return c
}

// noteShown records what a member was shown, whether the member uses it or not.
func (n *node) noteShown(c *protocol.Cell) {
	n.seen = max(n.seen, c.Record.Term)
	if w := n.w; c.Record.Released && c.Record.Incarnation != n.incarnation() && !w.calm && w.plan.recurs() && w.extra.chance(0.1) {
		w.queue.add(w.now+w.extra.span(w.extra.pick(4*time.Millisecond, 300*time.Millisecond)), func() { w.ambush(n) })
	}
}

// career draws how the work itself may end its term, on purpose or by a fault.
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
	if n.w.calm || !n.working || n.term != term {
		return
	}
	n.w.tracef(n, "panics")
	n.working, n.inside, n.leftover = false, false, term
	n.m.Abandon(n.now())
	n.pump()
	n.later(n.w.span(4*n.w.plan.lease), func() { n.w.crash(n) })
}

// patience returns how long the work takes to finish when asked; some work ignores the request
// until it must stop.
func (n *node) patience() time.Duration {
	if n.w.plan.overstay && !n.w.calm && n.w.chance(0.3) {
		return 2 * n.w.plan.finishWithin
	}
	if n.w.trying || n.dawdles == n.term && !n.w.calm {
		return n.w.plan.finishWithin * 8 / 10 // time for the successor's name to arrive
	}
	return n.w.span(n.w.plan.finishWithin / 2)
}

// finish ends the term after its work has stopped. The member usually campaigns again.
func (n *node) finish(term uint64) {
	if !n.working || n.term != term {
		return
	}
	if left := n.busyUntil - n.w.now; left > 0 {
		n.later(left, func() { n.finish(term) })
		return
	}
	n.working = false
	n.leave(term)
}

// stop ends the work of a term that was lost. It stops in time; its function may return much later.
func (n *node) stop(term uint64) {
	if !n.working || n.term != term {
		return
	}
	if left := n.busyUntil - n.w.now; left > 0 {
		n.later(left, func() { n.stop(term) })
		return
	}
	n.working = false
	if away := n.proc.cutUntil - n.w.now; away > 0 && n.w.plan.recurs() && n.w.extra.chance(0.9) {
		n.later(away+n.w.plan.renew*2/3+n.w.extra.span(n.w.plan.renew*4/3), func() { n.leave(term) })
		return
	}
	if n.w.chance(0.7) {
		n.leave(term)
		return
	}
	n.later(n.w.span(n.w.plan.lease), func() { n.leave(term) })
}

func (n *node) leave(term uint64) {
	if !n.inside || n.term != term {
		return
	}
	n.inside = false
	rests := n.w.plan.recurs() && n.w.extra.chance(0.7) && !n.w.calm
	n.m.Finish(n.now(), "", !rests, 0)
	n.pump()
}

// act is the work's loop: it asks whether it may act, and a moment later it acts on some resource.
// The less time is left, the more often it asks.
func (n *node) act(life int, term uint64, within time.Duration) {
	w := n.w
	n.later(w.span(within)+time.Millisecond, func() {
		if !n.working || n.term != term {
			return
		}
		if _, err := n.m.Remaining(n.now(), n.former); err == nil && n.former != term && n.former > 0 {
			w.check.failf("%s was told that it may act by term %d, in term %d", n.incarnation(), n.former, term)
		}
		left, err := n.m.Remaining(n.now(), term)
		w.check.answer(n, term, err == nil)
		n.pump()
		if err == nil {
			n.commit(life, term, left)
		}
		if n.working && n.term == term {
			n.act(life, term, min(w.plan.lease/2, left))
		}
	})
}

// commit is the act itself. It comes within the reserve that the user asked for, unless the process
// is stopped between the question and the act; then only the token helps.
func (n *node) commit(life int, term uint64, left time.Duration) {
	reserve := n.w.span(n.w.plan.stopWithin + n.late)
	at := n.w.now + reserve
	n.busyUntil = max(n.busyUntil, at)
	n.w.queue.add(at, func() {
		n.run(life, func() { n.w.check.act(n, term, n.w.now == at, left) })
	})
}
