//go:build unix

package guard

import "testing"

func TestExitCodesMatchAShell(t *testing.T) {
	for ending, want := range map[Ending]int{{Code: 0}: 0, {Code: 7}: 7, {Signal: 9}: 137, {Signal: 15}: 143} {
		if got := ending.ExitCode(); got != want {
			t.Errorf("%+v: %d, want %d", ending, got, want)
		}
	}
}

// A user may call it by hand.
func TestGuardWithoutACandidate(t *testing.T) {
	for _, numbers := range [][]string{nil, {"x", "4", "5", "6"}, {"700", "701", "702", "703"}} {
		if err := Main(numbers); err == nil {
			t.Errorf("it runs with the files %v", numbers)
		}
	}
}
