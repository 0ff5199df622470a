package main

import (
	"io"
	"testing"
	"time"
)

// TestReap: kept is where nobody was elected since, and a write counts from when it was sent.
func TestReap(t *testing.T) {
	f := &field{cast: &cast{b: &bench{log: io.Discard}, journal: newJournal()}, plots: []plot{{election: "e"}, {election: "other"}}}
	say := func(r report) {
		r.Election = "e"
		f.journal.add(entry{"a", r})
	}
	say(report{What: leads, At: 10})
	say(report{What: wrote, At: 20, Until: 25})
	say(report{What: wrote, At: 40, Until: 60}) // sent before
	say(report{What: wrote, At: 70, Until: 145})
	say(report{What: wrote, At: 150, Until: 155})
	got := f.reap(50)[0]
	if !got.kept || got.back != 145-50 || got.gap != 145-60 {
		t.Errorf("%+v", got)
	}
	say(report{What: leads, At: 160})
	if all := f.reap(50); all[0].kept || !all[1].kept {
		t.Errorf("%+v", all)
	}
}

func TestRates(t *testing.T) {
	r := rates{"Produce": 12, "Fetch": 121.6, "Metadata": 0}
	if got, want := r.String(), "Fetch 122, Produce 12"; got != want || r.sum() != 133.6 {
		t.Errorf("%s, %v; want %s", got, r.sum(), want)
	}
}

// TestParts: each part of a broker has one line.
func TestParts(t *testing.T) {
	seen := map[string]bool{}
	for _, p := range parts([]time.Duration{20 * time.Second, 10 * time.Second}) {
		seen[p.String()] = true
	}
	if len(seen) != 12 || !seen["lease 10.0 s, the controller frozen: kept"] {
		t.Error(seen)
	}
}
