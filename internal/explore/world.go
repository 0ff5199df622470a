package main

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/tenure-go/tenure/clock"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/internal/protocol"
	"github.com/tenure-go/tenure/internal/record"
)

// world is one state of the model: the members, the register, and the messages between them.
type world struct {
	model    *model
	now      time.Duration // true time
	members  []member
	cell     protocol.Cell
	before   protocol.Cell // before the last write
	writes   uint64        // applied so far: the version of the next one, and the floor
	era      uint64        // of the register: it was recreated or restored so often, and once more
	restored bool          // the cell is from an earlier era
	net      []message
	left     budget
	nonces   uint64
	elected  uint64 // the highest term that was announced
	fault    string // the rule that is broken, or ""
}

// member is one process: its machine, its clock, and its work.
type member struct {
	m     *protocol.Machine
	alive bool
	life  int
	timed bool
	wake  time.Duration // when the timer is due, by the member's clock
	// working is the term of the work that runs, or 0. stopping: that work was told to stop.
	working  uint64
	stopping bool
	// frozen: the process is stopped. cut: it does not reach the register.
	frozen, cut bool
}

// message is a request on its way to the register, its answer on its way back, or a push.
type message struct {
	from, life int // the member whose request it is, or that the push is for
	op         protocol.Op
	answered   bool
	push       bool // of the cell; it counts as answered
	held       bool // it may take any time
	outcome    protocol.Outcome
	version    driver.Version
	cell       protocol.Cell // of a read, or a push
}

// budget counts the faults and orders that may still come.
type budget struct {
	Crashes, Failures, Repeats, Freezes, Cuts, Holds, Finishes, Orders, Purges int
	Recreations, Restores, Wrecks, Stale                                       int
}

// model holds the settings that all worlds share.
type model struct {
	quantum time.Duration // true time passes in steps of at most this length
	until   time.Duration // and ends here
	// rates are the local seconds of each member in a true one, in thousandths.
	rates []time.Duration
	watch bool
	start budget
	cfgs  []*protocol.Config
	at    *world // the world whose machine runs, for Rand
}

// begun is the reading of all clocks at the beginning. It is not zero, which means no time.
const begun = time.Hour

// newModel returns a model with a lease of four seconds that is renewed each second. The clocks of
// the first two members differ by as much as the margin of one second allows for. If mixed, the
// lease of the second member is half as long.
func newModel(members int, mixed bool) *model {
	const skew, lateness = 0.1, 272 * time.Millisecond
	mo := &model{quantum: time.Second}
	for i := range members {
		lease := 4 * time.Second
		if mixed && i == 1 {
			lease /= 2
		}
		cfg := &protocol.Config{
			ID: string(rune('a' + i)), Lease: lease, Renew: lease / 4, FinishWithin: lease / 2, Poll: lease / 4, PollStable: lease / 4,
			Retry: []time.Duration{lease / 8}, HeadStart: lease / 16, Rand: mo.random,
		}
		cfg.Promise(skew, lateness, 0)
		mo.cfgs = append(mo.cfgs, cfg)
		mo.rates = append(mo.rates, []time.Duration{900, 1100, 1000}[i%3])
	}
	return mo
}

// random returns a number that no other call in the same history returns. Its last byte, from which
// machines draw the length of waits, is always the middle one.
func (mo *model) random() uint64 {
	mo.at.nonces++
	return mo.at.nonces<<8 | 128
}

// first returns the first state: all members have started, and nothing was ever written.
func (mo *model) first() *world {
	w := &world{model: mo, members: make([]member, len(mo.cfgs)), left: mo.start, era: 1}
	w.cell = protocol.Cell{Version: "new", Pristine: true, Era: w.era}
	for i := range w.members {
		w.boot(i)
	}
	return w
}

func (w *world) clone() *world {
	c := *w
	c.members = slices.Clone(w.members)
	for i := range c.members {
		if c.members[i].m != nil {
			c.members[i].m = w.members[i].m.Clone()
		}
	}
	c.net = slices.Clone(w.net)
	return &c
}

func (w *world) clock(i int) clock.Reading {
	local := begun + w.now*w.model.rates[i]/1000
	return clock.Reading{Instant: clock.Instant{Mono: local, Raw: local, Boot: local}}
}

// next returns the true time after the next step: when the next timer is due, or a quantum ends.
func (w *world) next() time.Duration {
	q := w.model.quantum
	next := w.now/q*q + q
	for i := range w.members {
		if p := &w.members[i]; p.alive && p.timed {
			rate := w.model.rates[i]
			if due := ((p.wake-begun)*1000 + rate - 1) / rate; due > w.now {
				next = min(next, due)
			}
		}
	}
	return next
}

func (w *world) boot(i int) {
	p := &w.members[i]
	p.life++
	*p = member{alive: true, life: p.life, m: protocol.New(w.model.cfgs[i], fmt.Sprintf("%c%d", 'a'+i, p.life))}
	w.tell(i, func(m *protocol.Machine, now clock.Reading) {
		m.Watching(w.model.watch)
		m.Campaign(now, 0)
	})
}

// tell gives a machine one input, and carries out its answer.
func (w *world) tell(i int, input func(*protocol.Machine, clock.Reading)) {
	p, now := &w.members[i], w.clock(i)
	w.model.at = w
	input(p.m, now)
	todo := p.m.Next(now)
	for _, t := range todo.Transitions {
		w.transition(i, t)
	}
	if todo.Op != nil {
		w.send(i, *todo.Op)
	}
	p.timed, p.wake = todo.Timed, now.Mono+todo.Wake
	w.tidy()
}

func (w *world) transition(i int, t protocol.Transition) {
	p := &w.members[i]
	switch t.What {
	case protocol.Elected:
		if t.Term <= w.elected {
			w.failf("term %d is elected after term %d", t.Term, w.elected)
		}
		if p.working != 0 {
			w.failf("%c is elected while its work of term %d runs", 'a'+i, p.working)
		}
		w.elected, p.working, p.stopping = t.Term, t.Term, false
	case protocol.Lost, protocol.Leaving:
		p.stopping = true
	case protocol.Withdrawn:
		if p.working != 0 {
			w.failf("%c withdraws while its work of term %d runs", 'a'+i, p.working)
		}
	}
}

// failf notes the first rule that is broken.
func (w *world) failf(format string, args ...any) {
	if w.fault == "" {
		w.fault = fmt.Sprintf(format, args...)
	}
}

func (w *world) send(i int, op protocol.Op) {
	p := &w.members[i]
	if op.Write && op.Record.Released && p.working != 0 {
		w.failf("%c releases while its work of term %d runs", 'a'+i, p.working)
	}
	w.net = append(w.net, message{from: i, life: p.life, op: op})
}

// tidy drops messages that can change nothing more: answers that their members no longer await, and
// requests of such members that the register would refuse.
func (w *world) tidy() {
	w.net = slices.DeleteFunc(w.net, func(m message) bool {
		p := &w.members[m.from]
		here := p.alive && p.life == m.life
		if m.push {
			return !here
		}
		awaited := here && p.m.Current(m.op.ID)
		return !awaited && (m.answered || !m.op.Write || m.op.Prev != w.cell.Version)
	})
}

// check tests the rules that hold in each state.
func (w *world) check() {
	leads := -1
	for i := range w.members {
		p := &w.members[i]
		if !p.alive || !p.m.Holds(w.clock(i)) {
			continue
		}
		if leads >= 0 {
			w.failf("%c and %c lead", 'a'+leads, 'a'+i)
		}
		leads = i
	}
}

// apply carries out request i at the register.
func (w *world) apply(i int) {
	m := w.net[i]
	m.answered, m.outcome = true, protocol.Applied
	switch {
	case !m.op.Write:
		m.cell = w.seen()
	case m.op.Prev != w.cell.Version:
		m.outcome = protocol.Conflict
	default:
		w.put(protocol.Cell{Kind: protocol.Valid, Record: m.op.Record})
		m.version = w.cell.Version
	}
	w.net[i] = m
}

// seen is what a read returns.
func (w *world) seen() protocol.Cell {
	c := w.cell
	c.Floor, c.Era, c.Unproven = w.writes, w.era, w.restored
	return c
}

func (w *world) put(c protocol.Cell) {
	w.writes++
	c.Version, c.Floor, c.Era = driver.Version(strconv.FormatUint(w.writes, 10)), w.writes, w.era
	w.before, w.cell, w.restored = w.seen(), c, false
	if !w.model.watch {
		return
	}
	for i := range w.members {
		if p := &w.members[i]; p.alive {
			w.net = append(w.net, message{from: i, life: p.life, answered: true, push: true, cell: c})
		}
	}
}

var errFailed = errors.New("the connection is lost")

// recreate begins another era without a record.
func (w *world) recreate() {
	w.era++
	w.before, w.cell, w.restored = protocol.Cell{}, protocol.Cell{Floor: w.writes, Era: w.era}, false
}

// restore begins another era with the state before the last write, as a standby has it that lacks
// this write. No version of the earlier era fits it.
func (w *world) restore() {
	w.era++
	w.writes++
	w.cell, w.cell.Pristine = w.before, false
	w.cell.Version, w.restored = driver.Version(strconv.FormatUint(w.writes, 10)), w.cell.Kind != protocol.Absent
}

var errDamaged = errors.New("damaged")

// wreck damages the record. Its term and its lease stay legible.
func (w *world) wreck() {
	r := w.cell.Record
	w.put(protocol.Cell{Kind: protocol.Malformed, Problem: errDamaged, Record: record.Record{Lease: r.Lease, Term: r.Term, Nonce: r.Nonce}})
}

// reset puts a vacant record in place of a damaged one, as an operator does.
func (w *world) reset() {
	w.model.at = w
	if r, ok := protocol.New(w.model.cfgs[0], "").Vacate(w.seen()); ok {
		w.put(protocol.Cell{Kind: protocol.Valid, Record: r})
	}
}

// order adds a request to hand over to the record, as an operator does.
func (w *world) order(to string) bool {
	c := w.cell
	if c.Kind != protocol.Valid || !c.Record.Held() || c.Record.Request != nil || w.restored {
		return false
	}
	c.Record.Request = &record.Request{To: to, By: "operator", Term: c.Record.Term}
	w.put(c)
	return true
}
