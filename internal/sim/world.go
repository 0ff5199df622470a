package main

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/tenure-go/tenure/internal/protocol"
	"github.com/tenure-go/tenure/internal/record"
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
func run(seed uint64, cfg settings, trace io.Writer) (s stats, fault error) {
	defer rescue(&fault)
	w := &world{cfg: cfg, dice: newDice(seed, 0x7e9), more: newDice(seed, 0xe11), extra: newDice(seed, 0x1a57), watches: newDice(seed, 0x3a7e), promotions: newDice(seed, 0x50b1), farClocks: newDice(seed, 0xfa5c), edits: newDice(seed, 0xed17), rumors: newDice(seed, 0x4ea5), offers: newDice(seed, 0xacce5), out: trace, verbose: trace != nil}
	w.plan = w.draw()
	w.stats.free = w.plan.free()
	w.check = newCheck(w)
	w.store = newStore(w)
	w.tracef(nil, "plan %+v", w.plan)
	w.populate()
	w.schedule()
	w.startElder()
	w.queue.add(cfg.Hour*3/4, w.quieten)
	for w.now < cfg.Hour && w.check.fault == nil {
		w.happen(w.queue.pop())
	}
	if w.check.fault == nil {
		w.check.busyEnough()
	}
	return w.stats, w.check.fault
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
