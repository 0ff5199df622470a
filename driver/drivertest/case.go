package drivertest

import (
	"slices"
	"testing"

	"github.com/tenure-go/tenure/internal/test/kit"
)

// testCase is one promise of the contract.
type testCase struct {
	name string
	why  string
	run  func(*trial)
}

// on runs the case on the harness that open returns.
func (c testCase) on(open func(t testing.TB) Harness) func(testing.TB, kit.Timing) {
	return func(t testing.TB, time kit.Timing) { c.run(newTrial(t, open(t), time)) }
}

// cases returns all cases, in the order in which a new adapter should get them right.
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
