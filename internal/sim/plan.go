package main

import (
	"time"

	"github.com/tenure-go/tenure/internal/protocol"
)

// drift is the bound r that members state for their clocks, and loose the one that some members
// state where bounds differ. The flag -drift multiplies the real error of the clocks.
const (
	drift = 0.01
	loose = 0.1
)

// slew is how much a time daemon may change the rate of CLOCK_MONOTONIC.
const slew = 0.083

// plan holds the draws of one seed. Every seed draws a handful of fault kinds, because many faults
// at once hide each other.
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
	fail      bool // answers are errors that come at once, whether the request is applied or not
	slew      bool // the time daemon changes the rate of CLOCK_MONOTONIC
	pause     bool // processes are stopped and continued
	step      bool // wall clocks are set, where they count suspended time
	suspend   bool // machines are suspended and resumed
	freeze    bool // machines are frozen with all their clocks
	crash     bool // processes are killed and restarted
	cut       bool // a member cannot reach the store for a while, or none can
	erase     bool // the record is deleted, purged, or expires
	foreign   bool // an outsider writes other bytes under the key
	broken    bool // an outsider writes a malformed record
	rollback  bool // an older state is put back
	spam      bool // hand-overs are requested all the time
	offers    bool // and offered
	mixed     bool // members have different leases, and change them at restarts and while they run
	twins     bool // two elections in one process
	overstay  bool // work that ignores the request to stop
	yield     bool // leaders resign by themselves
	panics    bool // work ends by a panic
	withdraws bool // candidates give up and come back
	ranked    bool // members have different priorities
	nominated bool // an outside nominator names one member, none, or several
	strict    bool // and no other member ever leads
	stuck     bool // and in the end it names none
	several   bool // or two, permanently
	fickle    bool // members are at times not fit to lead
	wreck     bool // a leader's record is damaged, and still shows its lease
	resets    bool // an operator often checks the record, and resets a damaged one
	bounds    bool // members state different bounds for their clocks
	silent    bool // and some state none, as older releases do
	remakes   bool // the store is deleted and recreated, and counts its versions from the beginning
	eras      bool // and it reports that
	blank     bool // but not in its pushes
	elders    bool // a candidate of an older system takes part
	peers     bool // the leader pushes, to members that have read that it leads
	forges    bool // and at times it pushes false records
	flickers  bool // watches end for a while, and begin again
	rumors    bool // anybody can push, and false states are pushed too
	loses     bool // the store loses its last writes, and gives their versions to others
	promotes  bool // a standby without the last writes takes over; each state has an era
	farClock  bool // the store's floor is a clock, which at times is centuries ahead
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
	// With both, a machine that was frozen could get its old term back permanently.
	p.rollback = !p.freeze && w.chance(0.05)
	// A deleted record does not show its lease. If members have different leases, none can know
	// how long to wait (docs/guarantees.md).
	if p.mixed {
		p.erase, p.foreign, p.broken = false, false, false
	}
	w.drawMore(&p)
	w.drawExtra(&p)
	w.drawRecurring(&p)
	p.peers = w.extra.chance(0.15)
	p.forges = p.peers && w.extra.chance(0.7)
	p.watch = p.watch || p.peers
	p.flickers = p.watch && !p.peers && w.watches.chance(0.15)
	p.rumors = p.watch && !p.peers && w.rumors.chance(0.15)
	p.offers = w.offers.chance(0.25)
	w.drawPromotions(&p)
	p.elders = !p.mixed && !p.recurs() && !p.rollback && !p.freeze && !p.nominated && !p.ranked && w.extra.chance(0.5)
	p.floorless = !p.clockFloor && w.chance(0.2)
	p.farClock = p.keepsTerms() && w.farClocks.chance(0.5)
	p.clockFloor = p.clockFloor || p.farClock
	p.slew = p.slew || p.suspend && w.extra.chance(0.4) // for the effects of both together
	if !p.pristine {
		p.startSeq += 5
	}
	return p
}

// drawMore draws further faults, from a stream of their own, so that it does not change the other
// draws.
func (w *world) drawMore(p *plan) {
	p.fickle = w.more.chance(0.15) || (p.ranked || p.nominated) && w.more.chance(0.4)
	p.wreck = w.more.chance(0.05) || p.mixed && w.more.chance(0.3)
	// With mixed leases the operator uses the longest lease.
	p.foreign = p.foreign || p.mixed && !p.wreck && w.more.chance(0.3)
	p.resets = (p.foreign || p.broken || p.wreck) && w.more.chance(0.7)
	p.replay = p.replay || p.foreign && p.resets && w.more.chance(0.3)
	// Members with a watch know the last state.
	p.rollback = p.rollback || p.watch && !p.freeze && w.more.chance(0.15)
}

// drawExtra draws whether members state different bounds, and the faults that matter then. It has a
// stream of its own too.
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

// drawRecurring draws the faults that make versions recur.
func (w *world) drawRecurring(p *plan) {
	if p.freeze || p.mixed {
		return
	}
	p.remakes = w.extra.chance(0.36)
	p.eras = p.remakes && w.extra.chance(0.5)
	p.blank = p.eras && w.extra.chance(0.4)
	p.loses = w.extra.chance(0.1)
}

// drawPromotions draws whether the store is a database with a standby. Its versions never recur,
// and its floor is a clock.
func (w *world) drawPromotions(p *plan) {
	p.promotes = !(p.freeze || p.mixed || p.recurs() || p.rollback || p.watch && !p.rumors) && w.promotions.chance(0.5)
	if p.promotes {
		p.eras, p.clockFloor, p.pristine = true, true, false
	}
}

// recurs reports whether the store may lose its history, so that the same version may name another
// state, or one that was lost.
func (p *plan) recurs() bool { return p.remakes || p.loses || p.promotes }

// forgets reports whether the record may be lost while the store does not vouch for terms. Then
// terms can repeat, and the check is only that no member claims a term that it knows to be used.
func (p *plan) forgets() bool {
	return p.loses && !p.clockFloor || p.floorless && (p.remakes || p.elders || p.erase || p.foreign || p.broken || p.rollback || !p.pristine)
}

// keepsTerms reports whether the cell always shows the last term.
func (p *plan) keepsTerms() bool {
	return !(p.recurs() || p.erase || p.foreign || p.broken || p.wreck || p.rollback || p.elders || p.freeze || p.stale)
}

// free reports whether the run counts for the time with a leader (see idle): it has none of these
// faults.
func (p *plan) free() bool {
	return !(p.nominated || p.fickle || p.wreck || p.naps() || p.bounds || p.peers || p.elders || p.recurs() || p.foreign && (p.mixed || p.resets))
}

// defaced reports whether the same foreign bytes return again and again, and earlier resets with
// them.
func (p *plan) defaced() bool { return p.resets && p.foreign && p.replay }

// naps reports whether machines sleep for short times, and have slewed clocks while they are awake.
func (p *plan) naps() bool { return p.suspend && p.slew }

// alone reports whether all members are in one process, so that a fault that stops or cuts it off
// leaves no member to lead.
func (p *plan) alone() bool { return p.twins && p.nodes == 2 }

// slack reports whether followers of a healthy leader read so seldom that they see its release
// late.
func (p *plan) slack() bool { return !p.watch && p.pollStable > p.poll }

// timely reports whether every message that arrives comes soon and shows the true state.
func (p *plan) timely() bool {
	return !(p.slow || p.stale || p.fail || p.replay || p.step || p.recurs())
}

// cramped reports whether messages take nearly as long as the lease allows.
func (p *plan) cramped() bool { return p.lease < 100*p.latency }

// someLease returns the lease of a member where leases differ.
func (w *world) someLease() time.Duration {
	p := &w.plan
	if !p.mixed {
		return p.lease
	}
	return w.pick(p.lease, p.lease/2, p.lease*3/2)
}

// shortest returns the shortest lease that a member may have.
func (p *plan) shortest() time.Duration {
	if p.mixed {
		return p.lease / 2
	}
	return p.lease
}

// configure returns the settings of a member, at its start or while it runs.
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
		HasNominator: p.nominated, Precedence: p.precedence(), NomineeOnly: p.strict,
		Retry:     []time.Duration{0, min(100*time.Millisecond, lease/12), min(time.Second, lease/6)},
		HeadStart: 250 * time.Millisecond, Hearsay: p.peers, Rand: w.rng.Uint64,
	}
	cfg.Promise(n.proc.bound, d, p.stopWithin)
	return cfg
}
