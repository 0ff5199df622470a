package main

import (
	"regexp"
	"testing"

	"github.com/tenure-go/tenure/internal/overlay"
)

// TestNoFault runs a small part of `go run ./internal/ticksim`.
func TestNoFault(t *testing.T) {
	v := sweep(1, 12, false, false, regexp.MustCompile(""), nil)
	if v.Failed > 0 {
		t.Errorf("seed %d: %s\nreplay: go run ./internal/ticksim -seed %d -v", v.First, v.Fault, v.First)
	}
	if v.Stats.Runs < 500 || v.Stats.Terms < 100 {
		t.Errorf("it passes only because little happens: %+v", v.Stats)
	}
}

// TestPlantedBugsApply: the text that each edit replaces occurs exactly once. `-bugs` runs them.
func TestPlantedBugsApply(t *testing.T) {
	for _, b := range planted {
		if err := b.planted(func(overlay.Tool, string) error { return nil }); err != nil {
			t.Error(err)
		}
		if b.Shows == "" && b.Test == "" {
			t.Errorf("%s: nothing shows it", b.Name)
		}
	}
}

// TestPlantedBugsAreFound plants some of the bugs.
func TestPlantedBugsAreFound(t *testing.T) {
	for _, name := range []string{"unknown-starts", "lost-runs-again", "runs-overlap"} {
		for i := range planted {
			if b := &planted[i]; b.Name == name {
				if where, err := b.find(); err != nil {
					t.Errorf("%s: %s, %v", name, where, err)
				}
			}
		}
	}
}
