package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestNoFault runs a small part of `go run ./internal/ticksim`.
func TestNoFault(t *testing.T) {
	v := sweep(1, 12, false, regexp.MustCompile(""), nil)
	if v.Failed > 0 {
		t.Errorf("seed %d: %s\nreplay: go run ./internal/ticksim -seed %d -v", v.First, v.Fault, v.First)
	}
	if v.Stats.Runs < 500 || v.Stats.Terms < 100 {
		t.Errorf("it passes only because little happens: %+v", v.Stats)
	}
}

// TestPlantedBugsApply: the text that each edit replaces occurs exactly once. `-bugs` runs them.
func TestPlantedBugsApply(t *testing.T) {
	top, err := module()
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range planted {
		for _, e := range b.Edit {
			text, err := os.ReadFile(filepath.Join(top, "internal/ticks", e.File))
			if n := strings.Count(string(text), e.Old); err != nil || n != 1 {
				t.Errorf("%s: the text occurs %d times in %s, %v", b.Name, n, e.File, err)
			}
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
