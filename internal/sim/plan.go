package main

import (
	"time"

	"github.com/tenure-go/tenure/internal/protocol"
)

// drift is the bound r that members state for their clocks, and loose the one that some state
// where they differ. The flag -drift multiplies what the clocks really do.
const (
	drift = 0.01
	loose = 0.1
)

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
	nominated bool // somebody outside names who is to lead: one, nobody, or several
	strict    bool // and nobody else ever does
	stuck     bool // and in the end names nobody
	several   bool // or two, for good
	fickle    bool // members are at times not fit to lead
	wreck     bool // a leader's record is damaged, and shows its lease yet
	resets    bool // an operator sets right what is not sound, and looks often
	bounds    bool // members state different bounds for their clocks
	silent    bool // and some state none, as older releases do
	remakes   bool // the store is deleted and made anew, and counts its versions from the beginning
	eras      bool // and it can tell
	blank     bool // but not in what it pushes
	elders    bool // a candidate of an older system takes part
	peers     bool // the leader pushes, to those who have read that it leads
	forges    bool // and at times what is not so
	flickers  bool // watches end for a while, and begin again
	loses     bool // the store loses its last writes, and gives their versions to others
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
	p.nominated = !p.ranked && w.chance(0.2)
	p.strict = p.nominated && w.chance(0.3)
	p.stuck = p.nominated && !p.strict && w.chance(0.5)
	p.several = p.nominated && !p.stuck && w.chance(0.4)
	p.freeze = w.chance(0.05)
	p.rollback = !p.freeze && w.chance(0.05) // together they can give a machine that thaws its old term back for good
	// A record that is deleted takes the knowledge of its lease along: with members of different leases nobody can know
	// how long to wait. docs/guarantees.md says so.
	if p.mixed {
		p.erase, p.foreign, p.broken = false, false, false
	}
	w.drawMore(&p)
	w.drawExtra(&p)
	w.drawRecurring(&p)
	p.peers = w.extra.chance(0.15)
	p.forges = p.peers && w.extra.chance(0.7)
	p.watch = p.watch || p.peers
	p.flickers = p.watch && !p.peers && w.watches.chance(0.25)
	p.elders = !p.mixed && !p.recurs() && !p.rollback && !p.freeze && !p.nominated && !p.ranked && w.extra.chance(0.5)
	p.floorless = !p.clockFloor && w.chance(0.2)
	p.slew = p.slew || p.suspend && w.extra.chance(0.4) // for what comes of both
	if !p.pristine {
		p.startSeq += 5
	}
	return p
}

// drawMore draws what came later than the rest.
func (w *world) drawMore(p *plan) {
	p.fickle = w.more.chance(0.15) || (p.ranked || p.nominated) && w.more.chance(0.4)
	p.wreck = w.more.chance(0.05) || p.mixed && w.more.chance(0.3)
	p.foreign = p.foreign || p.mixed && !p.wreck && w.more.chance(0.3) // the operator knows of the longest lease
	p.resets = (p.foreign || p.broken || p.wreck) && w.more.chance(0.7)
	p.replay = p.replay || p.foreign && p.resets && w.more.chance(0.3)
	p.rollback = p.rollback || p.watch && !p.freeze && w.more.chance(0.15) // those who watch know better
}

// drawExtra draws what came last.
func (w *world) drawExtra(p *plan) {
	p.bounds = w.extra.chance(0.25)
	p.silent = p.bounds && w.extra.chance(0.4)
	if p.bounds {
		p.erase = p.erase || !p.mixed && w.extra.chance(0.3)
		p.wreck = p.wreck || w.extra.chance(0.4)
		p.foreign = p.foreign || !p.mixed && w.extra.chance(0.3)
		p.resets = p.resets || (p.foreign || p.broken || p.wreck) && w.extra.chance(0.7)
		p.rollback = p.rollback || p.watch && !p.freeze && !p.mixed && w.extra.chance(0.5)
	}
}

// drawRecurring draws what makes versions recur.
func (w *world) drawRecurring(p *plan) {
	if p.freeze || p.mixed {
		return
	}
	p.remakes = w.extra.chance(0.36)
	p.eras = p.remakes && w.extra.chance(0.5)
	p.blank = p.eras && w.extra.chance(0.4)
	p.loses = w.extra.chance(0.1)
}

// recurs: the same version may name another state.
func (p *plan) recurs() bool { return p.remakes || p.loses }

// forgets: the record may be lost, and the store does not vouch for terms. Then they can repeat themselves, and all that
// can be asked is that nobody claims what he knows better.
func (p *plan) forgets() bool {
	return p.loses && !p.clockFloor || p.floorless && (p.remakes || p.elders || p.erase || p.foreign || p.broken || p.rollback || !p.pristine)
}

// free: nothing but what was there from the beginning decides for how long somebody leads.
func (p *plan) free() bool {
	return !(p.nominated || p.fickle || p.wreck || p.naps() || p.bounds || p.peers || p.elders || p.recurs() || p.foreign && (p.mixed || p.resets))
}

// defaced: the same foreign bytes are there again and again, and with them the resets of before.
func (p *plan) defaced() bool { return p.resets && p.foreign && p.replay }

// naps: machines sleep for moments, with clocks that are slewed while they are awake.
func (p *plan) naps() bool { return p.suspend && p.slew }

// alone: all members are in one process, so what stops one or cuts it off leaves nobody to lead.
func (p *plan) alone() bool { return p.twins && p.nodes == 2 }

// slack: a leader who is well is looked at seldom, so that its release is seen late.
func (p *plan) slack() bool { return !p.watch && p.pollStable > p.poll }

// timely: whatever arrives comes soon after it was sent, and shows what is.
func (p *plan) timely() bool {
	return !(p.slow || p.stale || p.fail || p.replay || p.step || p.recurs())
}

// cramped: messages take about as long as the lease leaves room for.
func (p *plan) cramped() bool { return p.lease < 100*p.latency }

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
	cfg := protocol.Config{
		ID: n.name, Priority: priority, Lease: lease, Renew: lease / 3,
		FinishWithin: p.finishWithin, Grace: p.grace, Poll: p.poll, PollStable: p.pollStable,
		Nominated: p.nominated, Precedence: p.precedence(), NomineeOnly: p.strict,
		Retry:     []time.Duration{0, min(100*time.Millisecond, lease/12), min(time.Second, lease/6)},
		HeadStart: 250 * time.Millisecond, Hearsay: p.peers, Rand: w.rng.Uint64,
	}
	cfg.Promise(n.proc.bound, d, p.stopWithin)
	return cfg
}
