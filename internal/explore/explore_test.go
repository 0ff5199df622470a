package main

import (
	"strings"
	"testing"
	"time"
)

// TestScenarios explores the scenarios that take less than a second.
func TestScenarios(t *testing.T) {
	for _, s := range quick {
		if s.name != "calm" && s.name != "crash" && s.name != "fail" && s.name != "purge" {
			continue
		}
		t.Run(s.name, func(t *testing.T) {
			if r := s.model().search(1_000_000); r.fault != "" || !r.whole || r.states < 1000 {
				t.Errorf("%d states, all: %v, fault %q", r.states, r.whole, r.fault)
			}
		})
	}
}

// TestControls: a search whose assumptions are broken finds two leaders.
func TestControls(t *testing.T) {
	for name, spoil := range map[string]func(*model){
		"clocks beyond the bound": func(mo *model) { mo.rates[0], mo.rates[1] = 700, 1300 },
		"no margin": func(mo *model) {
			for _, cfg := range mo.cfgs {
				cfg.Budget = cfg.Lease
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			mo := (&scenario{members: 2, until: 6 * time.Second, may: budget{Freezes: 1}}).model()
			spoil(mo)
			r := mo.search(1_000_000)
			if !strings.HasSuffix(r.fault, " lead") {
				t.Fatalf("%d states, fault %q", r.states, r.fault)
			}
			w := mo.first() // the moves lead there again
			for _, v := range r.trace {
				w = w.after(v)
			}
			if w.fault != r.fault {
				t.Errorf("the trace leads to %q", w.fault)
			}
			var lines strings.Builder
			mo.timelines(&lines, name, r.trace)
			if strings.Count(lines.String(), "may-act\n") != 2 {
				t.Errorf("not both leaders ask whether they may act:\n%s", &lines)
			}
		})
	}
}

// TestKeys: the order of two independent moves does not matter. A difference that matters shows.
func TestKeys(t *testing.T) {
	mo := (&scenario{members: 2, until: 6 * time.Second, may: budget{Crashes: 1}}).model()
	both := func(one, two uint8) *world {
		w := mo.first()
		for _, i := range []uint8{one, two} {
			w = w.after(move{arrive, i}).after(move{answer, i})
			w.net = append(w.net[:0:0], w.net...)
			// the claim that follows takes the last place: put it where the read was
			if last := len(w.net) - 1; last > int(i) {
				w.net[i], w.net[last] = w.net[last], w.net[i]
			}
		}
		return w
	}
	first := both(0, 1)
	if other := both(1, 0); first.key() != other.key() {
		t.Error("two orders of two reads give two states")
	}
	if again := first.clone(); again.key() != first.key() {
		t.Error("a copy is another state")
	}
	if later := first.after(move{kind: crash}); later.key() == first.key() {
		t.Error("a crash gives the same state")
	}
	if later := first.after(move{arrive, 0}); later.key() == first.key() {
		t.Error("a write that arrives gives the same state")
	}
}
