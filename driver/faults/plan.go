package faults

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"
)

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
