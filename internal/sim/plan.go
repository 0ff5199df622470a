package main

import (
	"time"

	"github.com/tenure-go/tenure/internal/protocol"
)

// drift is the bound r that the elections are promised; -drift multiplies what the clocks really do.
const drift = 0.01

// slew is what a time daemon may do to CLOCK_MONOTONIC.
const slew = 0.083

// plan is what one seed has in store. Every seed draws a handful of fault kinds, because many faults at once hide each other.
type plan struct {
	nodes        int
	lease        time.Duration
	renew        time.Duration
	poll         time.Duration
	pollStable   time.Duration
	stopWithin   time.Duration
	finishWithin time.Duration
	grace        time.Duration
	watch        bool
	pristine     bool
	clockFloor   bool
	floorless    bool // the store vouches for nothing
	startSeq     uint64

	latency time.Duration // of a message, typically

	// The kinds of fault.
	lose      bool // requests, answers and pushes are lost
	slow      bool // messages are delayed, some beyond a lease
	replay    bool // requests are delivered twice
	stale     bool // reads show older states
	fail      bool // answers are errors that come at once, whatever becomes of the request
	slew      bool // the time daemon changes the rate of CLOCK_MONOTONIC
	pause     bool // processes are stopped and continued
	step      bool // wall clocks are set, where they count suspended time
	suspend   bool // machines are suspended and resumed
	freeze    bool // machines are frozen with all their clocks
	crash     bool // processes are killed and started anew
	cut       bool // a member cannot reach the store for a while, or nobody can
	erase     bool // the record is deleted, purged, or expires
	foreign   bool // somebody writes other bytes under the key
	broken    bool // somebody writes a malformed record
	rollback  bool // an older state is put back
	spam      bool // hand-overs are asked for all the time
	mixed     bool // members have different leases, and change them when restarted and while they run
	twins     bool // two elections in one process
	overstay  bool // work that ignores being asked
	yield     bool // leaders resign of their own will
	panics    bool // work ends by a panic
	withdraws bool // candidates give up and come back
	ranked    bool // members have different priorities
}

func (w *world) draw() plan {
	p := plan{
		nodes: 2 + w.rng.IntN(3),
		lease: w.pick(5*time.Second, 10*time.Second, 15*time.Second, 15*time.Second, 20*time.Second, 30*time.Second),
		watch: w.chance(0.5), pristine: w.chance(0.5), clockFloor: w.chance(0.3),
		latency:  w.pick(200*time.Microsecond, 2*time.Millisecond, 20*time.Millisecond),
		startSeq: uint64(w.rng.IntN(3)),
	}
	if w.chance(0.05) {
		p.lease = time.Second
	}
	p.renew = p.lease / 3
	p.poll = p.renew
	p.pollStable = w.pick(p.renew, p.lease/2, p.lease)
	p.stopWithin = w.pick(0, 0, p.lease/20)
	p.finishWithin = w.pick(p.lease/2, 2*p.lease)
	p.grace = w.pick(0, 0, 0, p.lease/10)
	kinds := []*bool{&p.lose, &p.slow, &p.replay, &p.stale, &p.slew, &p.pause, &p.suspend, &p.crash, &p.cut, &p.cut, &p.crash,
		&p.erase, &p.foreign, &p.broken, &p.spam, &p.mixed, &p.twins, &p.overstay, &p.yield, &p.withdraws, &p.erase, &p.fail, &p.step, &p.panics}
	for _, k := range kinds {
		*k = *k || w.chance(0.25)
	}
	p.ranked = w.chance(0.15)
	p.freeze = w.chance(0.05)
	p.rollback = !p.freeze && w.chance(0.05) // together they can give a machine that thaws its old term back for good
	// A record that is deleted takes the knowledge of its lease along: with members of different leases nobody can know
	// how long to wait. docs/guarantees.md says so.
	if p.mixed {
		p.erase, p.foreign, p.broken = false, false, false
	}
	p.floorless = !p.clockFloor && w.chance(0.2)
	if !p.pristine {
		p.startSeq += 5
	}
	return p
}

// forgets: the record may be lost, and the store does not vouch for terms. Then they can repeat themselves, and all that
// can be asked is that nobody claims what he knows better.
func (p *plan) forgets() bool {
	return p.floorless && (p.erase || p.foreign || p.broken || p.rollback || !p.pristine)
}

// naps: machines sleep for moments, with clocks that are slewed while they are awake.
func (p *plan) naps() bool { return p.suspend && p.slew }

// slack: a leader who is well is looked at seldom, so that its release is seen late.
func (p *plan) slack() bool { return !p.watch && p.pollStable > p.poll }

// reliable: every message arrives, and soon, and nobody is stopped.
func (p *plan) reliable() bool {
	return !(p.lose || p.slow || p.cut || p.fail || p.replay || p.stale || p.pause || p.suspend || p.freeze || p.step || p.rollback)
}

// timely: whatever arrives comes soon after it was sent, and shows what is.
func (p *plan) timely() bool { return !(p.slow || p.stale || p.fail || p.replay || p.step) }

// cramped: messages take about as long as the lease leaves room for.
func (p *plan) cramped() bool { return p.lease < 100*p.latency }

func (w *world) pick(ds ...time.Duration) time.Duration { return ds[w.rng.IntN(len(ds))] }

func (w *world) chance(p float64) bool { return w.rng.Float64() < p }

// someLease is what a member is given where they differ.
func (w *world) someLease() time.Duration {
	p := &w.plan
	if !p.mixed {
		return p.lease
	}
	return w.pick(p.lease, p.lease/2, p.lease*3/2)
}

// configure is what a member is started with, or given while it runs.
func (w *world) configure(n *node, lease time.Duration) protocol.Config {
	p := &w.plan
	lease = lease.Truncate(time.Millisecond)
	priority := 0
	if p.ranked {
		priority = n.index + 1
	}
	d := protocol.TimerLateness(lease)
	return protocol.Config{
		ID: n.name, Incarnation: n.incarnation(), Priority: priority, Lease: lease, Renew: lease / 3,
		Budget:       lease - protocol.Margin(lease, drift, d, p.stopWithin),
		FinishWithin: p.finishWithin, Grace: p.grace, Poll: p.poll, PollStable: p.pollStable,
		Retry:     []time.Duration{0, min(100*time.Millisecond, lease/12), min(time.Second, lease/6)},
		HeadStart: 250 * time.Millisecond, Rand: w.rng.Uint64,
	}
}
