package drivertest

import (
	"testing"

	"github.com/tenure-go/tenure/internal/test/kit"
)

// RunElection runs real elections over the store, as subtests beside one another, each with a harness of its own from
// open. It adds nothing to the contract that Run checks: it is for what nobody thought of when that was written, and
// takes some leases, of two seconds or what the store needs.
//
// Two leaders and a falling token fail a case at once. A case that fails otherwise is repeated, until
// the test's time limit, if its leader lost the lease because the machine stalled.
func RunElection(t *testing.T, open func(t testing.TB) Harness) {
	t.Run("election", func(t *testing.T) { // which ends when all within have
		for _, c := range electionCases() {
			t.Run(c.name, func(t *testing.T) {
				t.Parallel()
				kit.Try(t, c.why, c.on(open))
			})
		}
	})
}

// RunElectionInBubbles is RunElection in virtual time, for stores without a network: each case has a bubble of
// testing/synctest to itself, in which it takes no time and no machine is too slow for a lease. What open returns must be
// made within, and be on package time's clock.
func RunElectionInBubbles(t *testing.T, open func(t testing.TB) Harness) {
	t.Run("election", func(t *testing.T) {
		for _, c := range electionCases() {
			t.Run(c.name, func(t *testing.T) { kit.TryInBubble(t, c.why, c.on(open)) })
		}
	})
}

func electionCases() []testCase {
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
