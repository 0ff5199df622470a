package main

import (
	"bytes"
	"flag"
	"math"
	"testing"
	"time"

	"github.com/tenure-go/tenure/internal/trace"
	"github.com/tenure-go/tenure/internal/trace/rules"
)

var traced = flag.Uint64("seeds", 12, "how many seeds TestTraces runs")

// TestTraces: the traces of simulated members replay, and keep the rules, which share no code with
// the protocol. A store that loses its history breaks rules by itself: the checker names it.
func TestTraces(t *testing.T) {
	checked := 0
	for seed := uint64(1); seed <= *traced; seed++ {
		var text bytes.Buffer
		log := trace.NewLog(&text, math.MaxInt)
		cfg := settings{Hour: 10 * time.Minute, Drift: 1, trace: log}
		_, _ = run(seed, cfg, nil) // ten minutes are too short for some of its own checks
		log.Flush(time.Hour)
		lines, err := trace.Parse(bytes.NewReader(text.Bytes()))
		if err == nil {
			err = trace.Replay(lines)
		}
		if err != nil {
			t.Errorf("seed %d: %v", seed, err)
		}
		p := newWorld(seed, cfg, nil).plan
		if p.recurs() || p.rollback || p.forgets() || p.freeze {
			continue
		}
		checked++
		if err := rules.Check(map[string][]byte{"trace": text.Bytes()}, 0); err != nil {
			t.Errorf("seed %d: %v", seed, err)
		}
	}
	if checked < 4 {
		t.Errorf("the rules applied to %d seeds", checked)
	}
}
