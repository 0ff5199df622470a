package program

import (
	"testing"
	"unicode"
)

// Hostile is text that changes a terminal in several ways.
const Hostile = "\x1b[31m \x07\r \x7f \u009b31m \u202e \u2066 \u200f \u2028 \U000e0041"

// Harmless checks that a text is not empty and has only printable characters and line ends.
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
