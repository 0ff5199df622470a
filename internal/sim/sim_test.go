package main

import (
	"bytes"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/tenure-go/tenure/internal/overlay"
	"github.com/tenure-go/tenure/internal/planted"
)

var standardHour = settings{Hour: time.Hour, Drift: 1}

// TestNoFault runs a small part of `go run ./internal/sim`.
func TestNoFault(t *testing.T) {
	if s := sweep(40, standardHour, false); s.fault != nil {
		t.Errorf("seed %d: %v\nreplay: go run ./internal/sim -seed %d -v", s.first, s.fault, s.first)
	}
}

func TestSeedReplaysExactly(t *testing.T) {
	for _, seed := range []uint64{3, 14} {
		var one, two bytes.Buffer
		_, _ = run(seed, standardHour, &one)
		_, _ = run(seed, standardHour, &two)
		if one.Len() == 0 || !bytes.Equal(one.Bytes(), two.Bytes()) {
			t.Errorf("seed %d has two traces, of %d and %d bytes", seed, one.Len(), two.Len())
		}
	}
}

func TestClocksBeyondTheBoundAreNoticed(t *testing.T) {
	s := sweep(40, settings{Hour: time.Hour, Drift: 3}, false)
	if s.fault == nil || !strings.Contains(s.fault.Error(), "two") {
		t.Errorf("clocks with three times the promised error do not make two leaders: %v", s.fault)
	}
}

// TestPlantedBugsAreCaught compiles the simulation with each bug in it. In -short mode, and in the
// quick run of all tests, it takes only some of them: `go run ./internal/sim -bugs` runs all, and
// is a separate step in .ci/run.
func TestPlantedBugsAreCaught(t *testing.T) {
	for _, name := range []string{"deadline-from-answer", "timer-by-version", "absence-claimed", "release-before-stop"} {
		t.Run(name, func(t *testing.T) {
			found, err := planted.Find(name)
			if err != nil {
				t.Fatal(err)
			}
			b := bug{found}
			v, err := b.hunt(60, false)
			if err != nil || v.Failed == 0 {
				t.Errorf("%s: not caught within 60 seeds, %v", b.Left, err)
			}
		})
	}
}

// TestEveryPlantedBugStillApplies: the text that each edit replaces occurs exactly once.
func TestEveryPlantedBugStillApplies(t *testing.T) {
	for _, b := range planted.All {
		if err := b.Plant(func(overlay.Tool, string) error { return nil }); err != nil {
			t.Error(err)
		}
	}
}

func TestPageListsEveryPlantedBug(t *testing.T) {
	page, err := os.ReadFile("../../docs/planted-bugs.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range planted.All {
		if h := (bug{b}); !strings.Contains(string(page), h.row()) {
			t.Errorf("docs/planted-bugs.md does not list %s as it is; write the page again", b.Name)
		}
	}
}

func TestPartsCoverAllPlantedBugs(t *testing.T) {
	found := map[string]int{}
	for _, part := range []string{"0/3", "7/3", "2/3"} {
		some, err := partOf(planted.All, part)
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range some {
			found[b.Name]++
		}
	}
	for _, b := range planted.All {
		if found[b.Name] != 1 {
			t.Errorf("three parts have %s %d times", b.Name, found[b.Name])
		}
	}
	for _, wrong := range []string{"1", "1/0", "-1/3", "a/b"} {
		if _, err := partOf(planted.All, wrong); err == nil {
			t.Errorf("part %q is accepted", wrong)
		}
	}
}
