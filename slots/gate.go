package slots

import (
	"sync"
	"time"

	"github.com/tenure-go/tenure/clock"
)

// gate decides whether this member may lead one slot. It implements nomination.Gate: the election
// of the slot asks it before each of its steps, and so also before it sends a claim. The lower
// slots decide: the leader of a slot j has a number of slots of at least j, so only the leader of a
// lower slot can have one that excludes this slot.
type gate struct {
	clock  clock.Clock
	within time.Duration // the largest age of a view of a lower slot

	mu sync.Mutex
	// allowed: no lower slot shows a number that excludes this one.
	allowed bool
	// viewed is the age of the oldest view of a lower slot, as the time from which it counts. The
	// lowest slot has no lower ones, and alone is true.
	viewed clock.Instant
	alone  bool
	told   bool // the last answer that the election knows of
	see    func(nominated bool)
}

// Nominate implements nomination.Nominator. No member is ever the nominee: the first one to claim
// leads.
func (g *gate) Nominate(see func(nominated bool)) (stop func()) {
	g.mu.Lock()
	g.see = see
	g.mu.Unlock()
	see(false)
	return func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.see = nil
	}
}

// MayLead implements nomination.Gate.
func (g *gate) MayLead() bool { return g.left() > 0 }

// left returns for how long this member may lead if it sees no lower slot again.
func (g *gate) left() time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.leftLocked()
}

func (g *gate) leftLocked() time.Duration {
	switch {
	case !g.allowed:
		return 0
	case g.alone:
		return g.within
	}
	return g.within - g.clock.Now().LeaderSince(g.viewed)
}

// set sets what the lower slots show. If the answer changes, the election makes a step at once.
func (g *gate) set(allowed, alone bool, viewed clock.Instant) {
	g.mu.Lock()
	g.allowed, g.alone, g.viewed = allowed, alone, viewed
	now := g.leftLocked() > 0
	see, changed := g.see, now != g.told
	g.told = now
	g.mu.Unlock()
	if changed && see != nil {
		see(false)
	}
}
