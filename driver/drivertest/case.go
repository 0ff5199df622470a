package drivertest

import "slices"

// testCase is one promise of the contract.
type testCase struct {
	name string
	why  string
	run  func(*trial)
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
		floorCases(),
		contextCases(),
		cutCases(),
		abilityCases(),
		watchCases(),
		watchStopCases(),
	)
}
