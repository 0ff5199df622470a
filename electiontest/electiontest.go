// Package electiontest is the conformance kit for elections over a store: real elections, as tests
// that every adapter runs after those of package drivertest.
//
//	func TestElections(t *testing.T) {
//		electiontest.Run(t, func(t testing.TB) drivertest.Harness {
//			return drivertest.Harness{Store: open(t)}
//		})
//	}
//
// These tests require nothing beyond the contract of package driver. They find faults that no case
// of drivertest covers.
package electiontest

import (
	"testing"

	"github.com/tenure-go/tenure/driver/drivertest"
	"github.com/tenure-go/tenure/internal/test/kit"
)

// Run runs all cases as subtests in parallel, each with a harness of its own from open. It takes a
// few times the lease. The lease is the longest of two seconds, Harness.Lease and the store's
// minimum.
//
// Two leaders and a falling token fail a case at once. After any other failure, the case runs again
// if its leader lost the lease because the machine stalled, until the test's time limit.
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
// testing/synctest to itself. Waiting costs no time there, and a slow machine loses no lease. The
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
		{"a renewed lease keeps the others out", "the store must prevent two leaders", holding(othersWait)},
		{"a release lets the next one lead", "a planned hand-over must not cost a lease", holding(releasePassesOn)},
		{"a leader hears that it is asked to hand over",
			"another process writes the request to the leader's cell", holding(requestIsHeard)},
		{"tokens grow over releases and removals",
			"a resource refuses a lower token, so the new leader could not write to it", holding(tokensGrow)},
		{"a removed record ends the term", "deleting it is how operators force a new leader", holding(removalEndsTerm)},
		{"foreign bytes are not overwritten", "by mistake, another program may use the key", holding(foreignStays)},
		{"a claim whose answer was lost is recognized",
			"a candidate that does not know its own claim locks itself out", holding(ownClaim(loseAnswer))},
		{"a claim that was delivered twice is recognized",
			"a proxy may repeat a request, and then the second answer is a conflict", holding(ownClaim(deliverTwice))},
		{"a silent leader is replaced, and not too soon",
			"no process reports this failure", holding(silentIsReplaced)},
	}
}
