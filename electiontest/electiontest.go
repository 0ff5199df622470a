// Package electiontest is the conformance kit for elections over a store: real elections, as tests
// that every adapter runs after those of package drivertest.
//
//	func TestElections(t *testing.T) {
//		electiontest.Run(t, func(t testing.TB) drivertest.Harness {
//			return drivertest.Harness{Store: open(t)}
//		})
//	}
//
// It adds nothing to the contract that drivertest checks: it finds faults that the contract does
// not name.
package electiontest

import (
	"testing"

	"github.com/tenure-go/tenure/driver/drivertest"
	"github.com/tenure-go/tenure/internal/test/kit"
)

// Run runs each case as a subtest, all beside one another, each with a harness of its own from
// open. It takes some leases, of two seconds or the store's minimum.
//
// Two leaders and a falling token fail a case at once. A case that fails otherwise is repeated,
// until the test's time limit, if its leader lost the lease because the machine stalled.
func Run(t *testing.T, open func(t testing.TB) drivertest.Harness) {
	t.Run("election", func(t *testing.T) { // which ends when all within have
		for _, c := range cases() {
			t.Run(c.name, func(t *testing.T) {
				t.Parallel()
				kit.Try(t, c.why, c.on(open))
			})
		}
	})
}

// RunInBubbles is Run in virtual time, for stores without a network: each case has a bubble of
// testing/synctest to itself, in which it takes no time and no machine is too slow for a lease. The
// store that open returns must be made in the bubble and use the clock of package time.
func RunInBubbles(t *testing.T, open func(t testing.TB) drivertest.Harness) {
	t.Run("election", func(t *testing.T) {
		for _, c := range cases() {
			t.Run(c.name, func(t *testing.T) { kit.TryInBubble(t, c.why, c.on(open)) })
		}
	})
}

// testCase is one thing that elections must do.
type testCase struct {
	name string
	why  string
	run  func(*trial)
}

// on runs the case on the harness that open returns.
func (c testCase) on(open func(t testing.TB) drivertest.Harness) func(testing.TB, kit.Timing) {
	return func(t testing.TB, time kit.Timing) { c.run(newTrial(t, open(t), time)) }
}

func cases() []testCase {
	return []testCase{
		{"a first candidate leads", "it is what the store is for", holding(firstLeads)},
		{"a renewed lease keeps the others out", "two leaders are what the store is to prevent", holding(othersWait)},
		{"a release lets the next one lead", "a planned hand-over must not cost a lease", holding(releasePassesOn)},
		{"a leader hears that it is asked to hand over",
			"the request is somebody else's write to the leader's own cell", holding(requestIsHeard)},
		{"tokens grow over releases and removals",
			"a resource refuses a lower token, so the new leader could do nothing", holding(tokensGrow)},
		{"a removed record ends the term", "deleting it is how operators force a new leader", holding(removalEndsTerm)},
		{"bytes of others are left alone", "the key may be somebody else's, by mistake", holding(foreignStays)},
		{"a claim whose answer was lost is recognised",
			"a candidate that does not know its own claim locks itself out", holding(ownClaim(loseAnswer))},
		{"a claim that was delivered twice is recognised",
			"proxies replay, and the answer is then a conflict with oneself", holding(ownClaim(deliverTwice))},
		{"a silent leader is replaced, and not too soon",
			"it is the one failure that nobody reports", holding(silentIsReplaced)},
	}
}
