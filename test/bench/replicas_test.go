package main

import (
	"testing"
	"time"
)

// TestShares: what a fault was to an election has one line.
func TestShares(t *testing.T) {
	seen := map[string]bool{}
	for _, s := range shares([]time.Duration{20 * time.Second, 5 * time.Second}) {
		seen[s.String()] = true
	}
	if len(seen) != 18 || !seen["lease 5.00 s, another server cut off: kept"] {
		t.Error(seen)
	}
}

// TestKept: a lease of 20 s must keep all leaders.
func TestKept(t *testing.T) {
	crops := []crop{{kept: true, back: time.Second}, {back: 3 * time.Second}}
	for lease, verdict := range map[time.Duration]string{20 * time.Second: "MISSED", 10 * time.Second: ""} {
		m := keptOf("x", lease, crops)
		if m.verdict.String() != verdict || m.value != "1 of 2; back 1.00 s / 1.00 s / 3.00 s / 3.00 s, n=2" {
			t.Errorf("lease %v: %+v", lease, m)
		}
	}
}
