package main

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"time"

	"github.com/tenure-go/tenure/clock"
	"github.com/tenure-go/tenure/internal/protocol"
	"github.com/tenure-go/tenure/internal/record"
	"github.com/tenure-go/tenure/internal/trace"
)

// world is one run.
type world struct {
	dice
	// Some faults have dice of their own. So their draws do not change the runs without them.
	more        dice // for faults of few runs
	extra       dice // for faults of still fewer runs
	watches     dice // for watches that end
	promotions  dice // for standbys that take over
	farClocks   dice // for clocks of the store that are centuries ahead
	edits       dice // for values that are edited by hand
	rumors      dice
	offers      dice
	rejoins     dice // for new elections in a running process
	cfg         settings
	plan        plan
	now         time.Duration
	queue       queue
	store       *store
	elder       *elder // nil: none
	nodes       []*node
	check       *check
	stats       stats
	outageUntil time.Duration
	crowd       int  // events since time last advanced
	deaf        bool // nothing is pushed any more
	lossy       bool // in the calm: the next write is lost (see losing)
	calm        bool // no more faults
	trying      bool // a leader that leaves takes most of the time allowed
	calmAt      time.Duration
	rounds      int  // hand-overs that were requested in the calm
	trials      int  // how often a leader ceased to be eligible in the calm
	settled     bool // there is a leader, which should stay (see settle)
	settledAt   time.Duration
	verbose     bool
	out         io.Writer
}

// settings are the figures that the seed does not draw.
type settings struct {
	Hour  time.Duration // the length of a run
	Drift float64       // the real error of clocks, in multiples of the promised bound
	trace *trace.Log    // of all members; nil: none
}

// stats are the results of a run. A run without enough elections does not pass.
type stats struct {
	ops, elections                   int
	led                              time.Duration
	free                             bool // see plan.free
	calmReads, calmWrites, calmTerms int
}

var (
	absent    = protocol.Cell{}
	foreign   = protocol.Cell{Kind: protocol.Foreign, Problem: errors.New("bytes of another program")}
	malformed = protocol.Cell{Kind: protocol.Malformed, Problem: errors.New("too long")}
	names     = map[protocol.What]string{
		protocol.Candidacy: "candidate", protocol.Elected: "elected", protocol.Leaving: "leaving", protocol.Lost: "lost",
		protocol.Released: "released", protocol.Withdrawn: "withdrawn", protocol.NewLeader: "leader",
		protocol.Overdue: "overdue", protocol.Trouble: "trouble", protocol.Refused: "refused", protocol.Alarm: "alarm",
		protocol.Asking: "asking",
	}
)

// run plays one seed to its end, or to its first fault.
func run(seed uint64, cfg settings, events io.Writer) (s stats, fault error) {
	defer rescue(&fault)
	w := newWorld(seed, cfg, events)
	w.check = newCheck(w)
	w.store = newStore(w)
	w.tracef(nil, "plan %+v", w.plan)
	w.populate()
	w.schedule()
	w.startElder()
	w.queue.add(cfg.Hour*3/4, w.quieten)
	for w.now < cfg.Hour && w.check.fault == nil {
		w.happen(w.next())
	}
	if w.check.fault == nil {
		w.check.busyEnough()
	}
	return w.stats, w.check.fault
}

// newWorld draws the plan of a seed.
func newWorld(seed uint64, cfg settings, events io.Writer) *world {
	w := &world{
		cfg: cfg, out: events, verbose: events != nil,
		dice: newDice(seed, 0x7e9), more: newDice(seed, 0xe11), extra: newDice(seed, 0x1a57),
		watches: newDice(seed, 0x3a7e), promotions: newDice(seed, 0x50b1), farClocks: newDice(seed, 0xfa5c),
		edits: newDice(seed, 0xed17), rumors: newDice(seed, 0x4ea5), offers: newDice(seed, 0xacce5),
		rejoins: newDice(seed, 0x4e3),
	}
	w.plan = w.draw()
	w.stats.free = w.plan.free()
	return w
}

// next takes the next event: a timer of a member, or an event of the queue. The queue has no timers
// because most are set again before they ring.
func (w *world) next() event {
	first := &event{}
	for _, n := range w.nodes {
		if n.timer.do != nil && (first.do == nil || n.timer.before(first)) {
			first = &n.timer
		}
	}
	if first.do == nil || len(w.queue.heap) > 0 && w.queue.heap[0].before(first) {
		return w.queue.pop()
	}
	e := *first
	*first = event{}
	return e
}

// happen runs one event, and checks that time does not stand still.
func (w *world) happen(e event) {
	const crowd = 10000
	if w.crowd++; e.at > w.now {
		w.crowd = 0
	}
	if w.crowd > crowd {
		w.check.failf("time stands still")
	}
	w.now = e.at
	e.do()
	w.check.always()
}

// populate makes the members. Each starts at its own time; twins share a process.
func (w *world) populate() {
	for i := range w.plan.nodes {
		n := &node{w: w, index: i, name: fmt.Sprintf("n%d", i), proc: &process{clocks: &machineClocks{}}}
		if w.plan.twins && i == 1 {
			n.proc, n.name = w.nodes[0].proc, w.nodes[0].name
		}
		if n.proc.bound == 0 {
			w.bind(n.proc, i)
		}
		n.begin(0)
		n.proc.clocks.reading = w.origin()
		w.retune(n.proc)
		w.nodes = append(w.nodes, n)
		w.queue.add(w.span(w.plan.lease/2), n.boot)
	}
	w.sample()
}

// sample measures the part of the time with a leader.
func (w *world) sample() {
	const step = 5 * time.Second
	if w.leading() != nil {
		w.stats.led += step
	}
	for _, n := range w.nodes {
		w.check.outstays(n)
	}
	w.queue.add(w.now+step, w.sample)
}

// find returns the member that has this incarnation now; nil if it was restarted since.
func (w *world) find(incarnation string) *node {
	for _, n := range w.nodes {
		if n.incarnation() == incarnation {
			return n
		}
	}
	return nil
}

func (w *world) tracef(n *node, format string, args ...any) {
	if !w.verbose {
		return
	}
	who := "world"
	if n != nil {
		who = n.incarnation()
	}
	fmt.Fprintf(w.out, "%14.6f %-8s %s\n", w.now.Seconds(), who, fmt.Sprintf(format, args...))
}

func describe(op protocol.Op) string {
	if !op.Write {
		return "read"
	}
	return kindOf(&op.Record) + fmt.Sprintf(" term %d on version %s", op.Record.Term, op.Prev)
}

func kindOf(r *record.Record) string {
	switch {
	case r.Released:
		return "release"
	case r.LeaderID == "":
		return "vacant record"
	case r.Seq == 1:
		return "claim"
	}
	return "renewal"
}

// event is an action at a moment of true time.
type event struct {
	at    time.Duration
	order uint64 // events of one moment happen in the order in which they were made
	do    func()
}

func (e *event) before(f *event) bool {
	return e.at < f.at || e.at == f.at && e.order < f.order
}

// queue is a binary heap of events. The one in the standard library boxes every element.
type queue struct {
	heap  []event
	order uint64
}

// next returns the order of an event that is made now.
func (q *queue) next() uint64 {
	q.order++
	return q.order
}

func (q *queue) add(at time.Duration, do func()) {
	q.heap = append(q.heap, event{at, q.next(), do})
	i := len(q.heap) - 1
	for i > 0 && q.heap[i].before(&q.heap[(i-1)/2]) {
		q.heap[i], q.heap[(i-1)/2] = q.heap[(i-1)/2], q.heap[i]
		i = (i - 1) / 2
	}
}

func (q *queue) pop() event {
	top, last := q.heap[0], len(q.heap)-1
	q.heap[0] = q.heap[last]
	q.heap[last] = event{}
	q.heap = q.heap[:last]
	q.sink(0)
	return top
}

func (q *queue) sink(i int) {
	for {
		least := i
		for c := 2*i + 1; c <= 2*i+2 && c < len(q.heap); c++ {
			if q.heap[c].before(&q.heap[least]) {
				least = c
			}
		}
		if least == i {
			return
		}
		q.heap[i], q.heap[least] = q.heap[least], q.heap[i]
		i = least
	}
}

// dice makes all random decisions. The same order of draws gives the same results.
type dice struct{ rng *rand.Rand }

func newDice(seed, stream uint64) dice { return dice{rand.New(rand.NewPCG(seed, stream))} }

func (d dice) chance(p float64) bool { return d.rng.Float64() < p }

func (d dice) pick(ds ...time.Duration) time.Duration { return ds[d.rng.IntN(len(ds))] }

// span returns a random time up to most, often very short.
func (d dice) span(most time.Duration) time.Duration {
	if most <= 0 {
		return 0
	}
	if d.chance(0.2) {
		most = most/50 + 1
	}
	return time.Duration(d.rng.Int64N(int64(most)))
}

// machineClocks are the clocks of one simulated machine. Their rates change now and then. On a
// suspended machine the monotonic clocks stand still, on a frozen one all do.
type machineClocks struct {
	last            time.Duration // true time of the last change of rates
	reading         clock.Reading // the reading then
	mono, raw, boot float64       // local seconds per true second
	asleep          bool          // suspended: the hardware's rates come back when it wakes
}

// epoch is the start of the wall clocks, which are right. No decision depends on them.
var epoch = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

func (c *machineClocks) at(t time.Duration) clock.Reading {
	d := float64(t - c.last)
	return clock.Reading{
		Instant: clock.Instant{
			Mono: c.reading.Mono + time.Duration(d*c.mono),
			Raw:  c.reading.Raw + time.Duration(d*c.raw),
			Boot: c.reading.Boot + time.Duration(d*c.boot),
		},
		Wall: epoch.Add(t),
	}
}

// set changes the rates from now on.
func (c *machineClocks) set(t time.Duration, mono, raw, boot float64) {
	c.reading = c.at(t)
	c.last, c.mono, c.raw, c.boot = t, mono, raw, boot
}

// step sets the clock that also counts suspended time. On a system without a better clock, this is
// the wall clock.
func (c *machineClocks) step(t, d time.Duration) {
	c.set(t, c.mono, c.raw, c.boot)
	c.reading.Boot += d
}

// retune draws new rates: the hardware's within the promised bound, often at its very edge, and
// CLOCK_MONOTONIC's far beyond it, by a time daemon.
func (w *world) retune(p *process) {
	off := w.cfg.Drift * p.bound
	raw := 1 + off*(2*w.rng.Float64()-1)
	if w.chance(0.5) {
		raw = 1 + off*float64(1-2*w.rng.IntN(2))
	}
	// CLOCK_BOOTTIME is slewed like CLOCK_MONOTONIC, and differs from it only by the time asleep.
	mono := raw
	if w.plan.slew && w.chance(0.5) {
		mono = raw * (1 + slew*max(-1, min(1, 3*w.rng.Float64()-1.5)))
	}
	p.clocks.set(w.now, mono, raw, mono)
}

// bind gives the i-th process the bound that it states for its clocks. The clocks keep the bound.
func (w *world) bind(p *process, i int) {
	p.bound = drift
	if w.plan.bounds && i > 0 {
		p.bound = [...]float64{loose, drift * 3, loose, drift}[(i-1+w.extra.rng.IntN(2))%4]
	}
	// An older release states no bound, and waits for the lease alone. So only a process with the
	// smallest bound may be one.
	p.silent = w.plan.silent && p.bound == drift
}

// widest returns the largest bound that a process may state.
func (p *plan) widest() float64 {
	if p.bounds {
		return loose
	}
	return drift
}

// origin draws a machine's clock readings at its start, which may also be negative.
func (w *world) origin() clock.Reading {
	any := func() time.Duration { return time.Duration(w.rng.Int64N(int64(2e6*time.Hour))) - 1e6*time.Hour }
	return clock.Reading{Instant: clock.Instant{Mono: any(), Raw: any(), Boot: any()}}
}
