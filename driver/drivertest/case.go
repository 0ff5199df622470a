package drivertest

import (
	"slices"
	"testing"
	"testing/synctest"
)

// testCase is one promise of the contract.
type testCase struct {
	name string
	why  string
	run  func(*trial)
}

// try runs the case, and says why it matters if it fails.
func (c testCase) try(t *testing.T, open func(t testing.TB) Harness, time timing) {
	t.Helper()
	defer func() {
		if t.Failed() {
			t.Logf("why: %s", c.why)
		}
	}()
	c.run(newTrial(t, open(t), time))
}

// tryInBubble runs the case in virtual time. That it was skipped would otherwise stay in the bubble.
func (c testCase) tryInBubble(t *testing.T, open func(t testing.TB) Harness) {
	t.Helper()
	skipped := false
	synctest.Test(t, func(t *testing.T) {
		defer func() { skipped = t.Skipped() }()
		c.try(t, open, virtualTime())
	})
	if skipped {
		t.SkipNow()
	}
}

// cases returns all of them, in the order in which a new adapter should get them right.
func cases() []testCase {
	return slices.Concat(
		absentCases(),
		swapCases(),
		valueCases(),
		keyCases(),
		raceCases(),
		removeCases(),
		recreateCases(),
		floorCases(),
		contextCases(),
		cutCases(),
		abilityCases(),
		watchCases(),
		watchStopCases(),
	)
}
