package protocol_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/internal/protocol"
	"github.com/tenure-go/tenure/internal/record"
)

// TestProperties checks the properties that hold after every input, in any order. One member gets
// random inputs from a register that others write to and whose answers get lost.
func TestProperties(t *testing.T) {
	led := 0
	for seed := range uint64(300) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			p := newProbe(t, seed)
			for range 500 {
				p.input()
				p.next()
			}
			led += p.terms
		})
	}
	if led < 800 {
		t.Errorf("%d terms in all: too little was tried", led)
	}
}

// probe is one member, its register, and the history of both.
type probe struct {
	*stage
	t   *testing.T
	rng *rand.Rand

	cell   protocol.Cell
	writes uint64
	nonces map[string]bool
	stored bool // the operation in flight has reached the register
	told   driver.Version
	out    protocol.Outcome

	elected uint64          // the latest term
	over    map[uint64]bool // terms that may no longer act
	terms   int
	stopped bool // the work of the latest term has stopped
}

func newProbe(t *testing.T, seed uint64) *probe {
	p := &probe{
		stage: newStage(), t: t, rng: rand.New(rand.NewPCG(seed, 1)),
		nonces: map[string]bool{}, over: map[uint64]bool{}, stopped: true,
		cell: protocol.Cell{Version: "new", Pristine: true},
	}
	p.cfg.Rand = p.rng.Uint64
	p.cfg.Grace = time.Duration(seed%3) * time.Second
	p.machine().Watching(seed%4 > 1)
	p.m.Campaign(p.now, 0)
	p.next()
	return p
}

// input makes one random input.
func (p *probe) input() {
	if p.rng.IntN(3) == 0 && p.todo.Timed && (p.op == nil || p.rng.IntN(6) == 0) {
		p.pass(p.todo.Wake)
	} else {
		p.pass(time.Duration(p.rng.Int64N(int64(time.Second))))
	}
	switch n := p.rng.IntN(42); {
	case n < 24 && p.op != nil:
		p.answer()
	case n < 30:
		p.m.Tick(p.now)
	case n < 33:
		p.m.Seen(p.now, p.cell)
	case n == 33:
		p.outsider()
	case n == 34:
		p.m.Ask(p.now, errors.New("leave"))
	case n == 35:
		p.m.Withdraw(p.now)
	case n == 36:
		p.m.Campaign(p.now, 0)
	case n == 37:
		p.m.SetEligible(p.now, p.rng.IntN(5) > 0)
	case n == 38:
		p.m.HandOver(p.now, "b", "c")
	default:
		p.m.Finish(p.now, "", p.rng.IntN(2) == 0, 0)
		p.stopped = p.stopped || p.m.Phase() != protocol.Leading && p.m.Phase() != protocol.Ended
	}
}

func (p *probe) pass(d time.Duration) {
	p.now.Mono += d
	p.now.Raw += d
	p.now.Boot += d
}

// answer lets the operation reach the register, or lets its answer come back, or loses either.
func (p *probe) answer() {
	if !p.stored && p.rng.IntN(10) > 0 {
		p.stored = true
		p.out = protocol.Applied
		if p.op.Write && p.op.Prev != p.cell.Version {
			p.out = protocol.Conflict
		} else if p.op.Write {
			p.put(protocol.Cell{Kind: protocol.Valid, Record: p.op.Record})
		}
		p.told = p.cell.Version
		return
	}
	out := p.out
	if !p.stored || p.rng.IntN(10) == 0 {
		out = protocol.Unknown
	}
	if p.op.Write {
		p.m.WriteDone(p.now, p.op.ID, p.told, out, errStore)
	} else {
		p.m.ReadDone(p.now, p.op.ID, p.cell, out, errStore)
	}
}

func (p *probe) put(c protocol.Cell) {
	p.writes++
	c.Version, c.Floor = driver.Version(strconv.FormatUint(p.writes, 10)), p.writes
	p.cell = c
}

// outsider makes another writer change the register.
func (p *probe) outsider() {
	switch r := p.cell.Record; p.rng.IntN(5) {
	case 0:
		p.put(protocol.Cell{})
	case 1:
		p.writes++
		p.cell = protocol.Cell{Floor: p.writes}
	case 2:
		p.put(protocol.Cell{Kind: protocol.Malformed, Record: record.Record{Lease: time.Second, Term: r.Term}})
	case 3:
		r.LeaderID, r.Incarnation, r.Term, r.Seq, r.Lease = "b", "b1", r.Term+p.rng.Uint64N(3), 1, 15*time.Second
		r.Nonce = strconv.FormatUint(p.writes, 10)
		p.put(protocol.Cell{Kind: protocol.Valid, Record: r})
	case 4:
		r.Request = &record.Request{Term: r.Term}
		p.put(protocol.Cell{Kind: p.cell.Kind, Record: r})
	}
}

// next asks the machine for its next actions, twice.
func (p *probe) next() {
	busy := p.op != nil && p.m.Current(p.op.ID)
	closing := p.m.Phase() == protocol.Releasing
	p.todo = p.m.Next(p.now)
	if busy && p.todo.Op != nil && !closing { // a release may give one up when its time is over
		p.t.Fatal("two operations in flight")
	}
	for _, tr := range p.todo.Transitions {
		p.transition(tr)
	}
	switch op := p.todo.Op; {
	case op != nil:
		p.start(op)
	case p.op != nil && !p.m.Current(p.op.ID):
		p.op = nil
	}
	again := p.m.Next(p.now)
	if again.Op != nil || len(again.Transitions) > 0 || again.Timed && again.Wake < p.todo.Wake {
		p.t.Fatalf("the first call of Next returns %+v, and the second %+v", p.todo, again)
	}
	if !again.Timed && p.m.Phase() != protocol.Idle {
		p.t.Fatalf("no timer is set in phase %d", p.m.Phase())
	}
	p.ask()
}

func (p *probe) transition(tr protocol.Transition) {
	if tr.What != protocol.Elected {
		return
	}
	if tr.Term <= p.elected {
		p.t.Fatalf("elected with term %d after term %d", tr.Term, p.elected)
	}
	if !p.m.Eligible() {
		p.t.Fatalf("elected with term %d, and is not eligible", tr.Term)
	}
	if !p.stopped {
		p.t.Fatalf("elected with term %d while the work of term %d runs", tr.Term, p.elected)
	}
	p.elected, p.stopped = tr.Term, false
	p.terms++
}

// start checks a new operation.
func (p *probe) start(op *protocol.Op) {
	p.op, p.stored = op, false
	if !op.Write {
		return
	}
	r := &op.Record
	if p.nonces[r.Nonce] {
		p.t.Fatalf("nonce %q was used before", r.Nonce)
	}
	p.nonces[r.Nonce] = true
	if kind(r) == "release" && !p.m.Eligible() && p.m.Phase() == protocol.Candidate {
		return // it releases its own record, which it may not claim over
	}
	phases := map[string]protocol.Phase{
		"claim": protocol.Candidate, "vacant": protocol.Candidate, "renew": protocol.Leading, "release": protocol.Releasing,
	}
	if want := phases[kind(r)]; p.m.Phase() != want {
		p.t.Fatalf("%s in phase %d", kind(r), p.m.Phase())
	}
	if r.Request != nil {
		p.t.Fatalf("%s with a request", kind(r))
	}
	if kind(r) == "claim" && !p.m.Eligible() {
		p.t.Fatal("claims, and is not eligible")
	}
	if r.Successor != "" && kind(r) != "release" {
		p.t.Fatalf("%s names a successor", kind(r))
	}
	if kind(r) == "release" && !p.stopped && r.Term == p.elected {
		p.t.Fatal("released before the work had stopped")
	}
}

// ask checks that a term that is over stays over, and that only the latest one can be valid.
func (p *probe) ask() {
	for term := p.elected; term > 0 && term+3 > p.elected; term-- {
		left, err := p.m.Remaining(p.now, term)
		switch {
		case err != nil:
			p.over[term] = true
		case p.over[term] || term != p.elected:
			p.t.Fatalf("term %d may act again for %v", term, left)
		case left <= 0 || left > p.cfg.Budget:
			p.t.Fatalf("term %d may act for %v", term, left)
		}
	}
}
