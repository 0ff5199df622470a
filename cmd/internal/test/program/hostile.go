package program

import (
	"testing"
	"unicode"
)

// Hostile does things to a terminal, each of them in another way.
const Hostile = "\x1b[31m \x07\r \x7f \u009b31m \u202e \u2066 \u200f \u2028 \U000e0041"

// Harmless checks that all that is written is printed by a terminal, in lines, and nothing else.
func Harmless(t *testing.T, text string) {
	t.Helper()
	if text == "" {
		t.Error("nothing is written")
	}
	for i, r := range text {
		if r != '\n' && !unicode.IsPrint(r) {
			t.Errorf("%U in %q", r, text[max(0, i-60):min(len(text), i+20)])
			return
		}
	}
}
