package faults

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"
)

// Op is a kind of operation that faults can strike.
type Op int

const (
	// Read is a call of Read.
	Read Op = iota
	// Write is a call of CompareAndSwap.
	Write
	// Watch is the set-up of a watch.
	Watch
	// Push is one entry on its way to one watch.
	Push

	opCount = int(Push) + 1
)

// String names the operation in lower case.
func (op Op) String() string {
	names := [...]string{Read: "read", Write: "write", Watch: "watch", Push: "push"}
	if op < 0 || int(op) >= len(names) {
		return fmt.Sprintf("op(%d)", int(op))
	}
	return names[op]
}

// Fault is one kind of fault of an operation.
type Fault int

const (
	// None lets the operation pass.
	None Fault = iota
	// Fail refuses a call at once with an error that leaves the outcome open. Nothing was applied.
	Fail
	// Deny refuses a call with driver.ErrDenied.
	Deny
	// LoseRequest keeps a call from the store. It hangs for the plan's Timeout, or until its
	// context ends.
	LoseRequest
	// LoseAnswer carries a call out and returns an error that leaves the outcome open.
	LoseAnswer
	// DelayBefore delays a call before it is carried out. If its context ends first, it is lost.
	DelayBefore
	// DelayAfter carries a call out and delays its answer. If its context ends first, the answer is
	// lost.
	DelayAfter
	// HangBefore keeps a call from the store, and hangs until its context ends.
	HangBefore
	// HangAfter carries a call out, and hangs until its context ends.
	HangAfter
	// LandLate hangs for the plan's Timeout, or until the context of the write ends. The write
	// reaches the store some time after the call returned.
	LandLate
	// Replay sends a write twice, as a proxy may, and returns the second answer. If the first
	// attempt was applied, that is a conflict.
	Replay
	// Stale answers a read with an older entry of that key, which this wrapper has read or pushed
	// before. If there is none, the read passes.
	Stale
	// Drop loses a push.
	Drop
	// Delay delays a push; others may overtake it.
	Delay
	// Double delivers a push twice.
	Double
	// Reorder delays a push until the next one to the same watch is delivered. If none comes, the
	// push is lost.
	Reorder

	faultCount = int(Reorder) + 1
)

const (
	allCalls      = 1<<Read | 1<<Write | 1<<Watch
	answeredCalls = 1<<Read | 1<<Write
)

// kinds has, for each fault, its name and the operations that it can strike, as a set of bits.
var kinds = [faultCount]struct {
	name string
	ops  int
}{
	None:        {"none", allCalls | 1<<Push},
	Fail:        {"fail", allCalls},
	Deny:        {"deny", allCalls},
	LoseRequest: {"lose request", allCalls},
	LoseAnswer:  {"lose answer", answeredCalls},
	DelayBefore: {"delay before", allCalls},
	DelayAfter:  {"delay after", answeredCalls},
	HangBefore:  {"hang before", allCalls},
	HangAfter:   {"hang after", answeredCalls},
	LandLate:    {"land late", 1 << Write},
	Replay:      {"replay", 1 << Write},
	Stale:       {"stale", 1 << Read},
	Drop:        {"drop", 1 << Push},
	Delay:       {"delay", 1 << Push},
	Double:      {"double", 1 << Push},
	Reorder:     {"reorder", 1 << Push},
}

func (f Fault) known() bool { return f >= 0 && int(f) < faultCount }

func (f Fault) strikes(op Op) bool {
	return f.known() && op >= 0 && int(op) < opCount && kinds[f].ops&(1<<op) != 0
}

// String names the fault in lower case.
func (f Fault) String() string {
	if !f.known() {
		return fmt.Sprintf("fault(%d)", int(f))
	}
	return kinds[f].name
}

// defaultDelay is the MaxDelay of a plan that names no delay.
const defaultDelay = 100 * time.Millisecond

// Chances says how often each fault strikes, from 0 to 1 of the operations that it can strike. If
// the chances for one kind of operation add up to more than 1, the faults that are declared last
// strike less often.
type Chances map[Fault]float64

// Plan sets the faults by chance. The zero Plan lets everything pass.
type Plan struct {
	Chances Chances
	// MinDelay and MaxDelay bound every delay, also that of a late write. If they are equal, every
	// delay has that length. MaxDelay below MinDelay counts as MinDelay. Both zero: up to 100 ms.
	MinDelay, MaxDelay time.Duration
	// Timeout is how long LoseRequest and LandLate block their caller. Zero: until the context
	// ends.
	Timeout time.Duration
}

// String returns one line, with the faults in the order of their declaration.
func (p Plan) String() string {
	var b strings.Builder
	for f := range Fault(faultCount) {
		if chance := p.Chances[f]; chance > 0 {
			fmt.Fprintf(&b, "%v %g, ", f, chance)
		}
	}
	if b.Len() == 0 {
		b.WriteString("no chances, ")
	}
	low, high := p.delays()
	fmt.Fprintf(&b, "delays %v to %v", low, high)
	if p.Timeout > 0 {
		fmt.Fprintf(&b, ", timeout %v", p.Timeout)
	}
	return b.String()
}

func (p Plan) delays() (low, high time.Duration) {
	if p.MinDelay <= 0 && p.MaxDelay <= 0 {
		return 0, defaultDelay
	}
	return p.MinDelay, max(p.MinDelay, p.MaxDelay)
}

// delay draws from MinDelay to MaxDelay, both included.
func (p Plan) delay(r *rand.Rand) time.Duration {
	low, high := p.delays()
	return low + time.Duration(r.Int64N(int64(high-low)+1))
}

// draw picks the fault of an operation of this kind. It goes through the faults in the order of the
// constants, because the order of a map differs each time.
func (p Plan) draw(op Op, r *rand.Rand) Fault {
	left := r.Float64()
	for f := range Fault(faultCount) {
		if !f.strikes(op) {
			continue
		}
		if left -= p.Chances[f]; left < 0 {
			return f
		}
	}
	return None
}
