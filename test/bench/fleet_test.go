//go:build integration

package main

import (
	"testing"
	"time"

	"github.com/tenure-go/tenure/test/internal/figures"
)

// TestFleet has processes come, die and go on a real server.
func TestFleet(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes most of a minute")
	}
	b := openBench(t)
	a, err := b.armada(60, 3*time.Second)
	defer a.dismiss()
	if err != nil {
		t.Fatal(err)
	}
	defer a.tap.end()
	found, err := a.play(a.begin, a.join, a.crash, a.leave)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range found {
		t.Log(m.what, m.value)
		if m.verdict > figures.Missed {
			t.Errorf("%s: %s", m.what, m.value)
		}
	}
	if loads := a.led.loads(a.members); len(loads) != 2 || !a.led.fair(a.members, 60) {
		t.Errorf("in the end they lead %v", loads)
	}
}
