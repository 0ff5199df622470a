package faults

import "fmt"

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
