package electiontest

import (
	"context"
	"maps"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/drivertest"
	"github.com/tenure-go/tenure/driver/memory"
	"github.com/tenure-go/tenure/internal/test/able"
	"github.com/tenure-go/tenure/internal/test/kit"
)

func caseNamed(t *testing.T, name string) testCase {
	for _, c := range cases() {
		if c.name == name {
			return c
		}
	}
	t.Fatalf("there is no election case %q", name)
	return testCase{}
}

// try runs one case in a goroutine, because the case may end it.
func try(c testCase, h drivertest.Harness) *kit.Recorder { return tryIn(kit.VirtualTime(), c, h) }

func tryIn(time kit.Timing, c testCase, h drivertest.Harness) *kit.Recorder {
	return kit.Record(func(r *kit.Recorder) { c.run(newTrial(r, h, time)) })
}

// A case that no broken store fails is useless.
func TestCases(t *testing.T) {
	named, caught := map[string]bool{}, map[string]bool{}
	for _, b := range broken() {
		for _, name := range b.fails {
			caught[name] = true
		}
	}
	for _, c := range cases() {
		if named[c.name] || c.name == "" || c.why == "" || c.run == nil {
			t.Errorf("case %q is named twice or lacks something", c.name)
		}
		if named[c.name] = true; !caught[c.name] {
			t.Errorf("no broken store is known that fails %q", c.name)
		}
	}
}

func TestSoundStoresPass(t *testing.T) {
	type plain struct{ driver.Store }
	type bounded struct {
		driver.Store
		driver.Bounded
	}
	for name, open := range map[string]func() drivertest.Harness{
		"watched": func() drivertest.Harness { return sound().harness() },
		"polled": func() drivertest.Harness {
			s := sound()
			h := s.harness()
			h.Store = bounded{s, s}
			h.Peer = h.Store
			return h
		},
		"plain": func() drivertest.Harness { return drivertest.Harness{Store: plain{memory.NewPolled()}} },
	} {
		for _, c := range cases() {
			t.Run(name+"/"+c.name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					r := try(c, open())
					skips := name == "plain" && c.name == "a removed record ends the term"
					if len(r.Failures) > 0 || (r.Skipped != "") != skips {
						t.Errorf("failures %q, skipped %q", r.Failures, r.Skipped)
					}
				})
			})
		}
	}
}

// Also between stalls of the machine.
func TestBrokenStoresFail(t *testing.T) {
	for _, b := range broken() {
		for _, name := range b.fails {
			c := caseNamed(t, name)
			for _, time := range []func() kit.Timing{kit.VirtualTime, stallable} {
				t.Run(strings.ReplaceAll(b.name, " ", "-"), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						s := sound()
						b.damage(s)
						if r := tryIn(time(), c, s.harness()); len(r.Failures) == 0 {
							t.Errorf("%q passes (skipped: %q)", name, r.Skipped)
						}
					})
				})
			}
		}
	}
}

// stallable is time in which the machine may stall, up to a limit as tests have one.
func stallable() kit.Timing {
	end := time.Now().Add(10 * time.Minute)
	return kit.Timing{Left: func() time.Duration { return max(time.Until(end), time.Second) }, Stalls: true}
}

// A lease that is lost because of a stall proves nothing about the store. Here all calls hang for
// longer than a lease.
func TestStalledElectionsAreRepeated(t *testing.T) {
	noticed := 0
	for _, c := range cases() {
		t.Run(c.name, func(t *testing.T) {
			stalled := 0
			for nth := range int64(12) {
				synctest.Test(t, func(t *testing.T) {
					s := sound()
					stalls(s, nth)
					r := tryIn(stallable(), c, s.harness())
					if len(r.Failures) > 0 || r.Skipped != "" {
						t.Errorf("stalled at write %d: failures %q, skipped %q", nth, r.Failures, r.Skipped)
					}
					stalled += r.Logs
					time.Sleep(3 * easy)
				})
			}
			noticed += min(stalled, 1)
		})
	}
	if noticed < 8 { // of ten cases, two need no lease to last
		t.Errorf("stalls were noticed in %d cases", noticed)
	}
}

// stalls makes all calls hang for three leases from the n-th write on.
func stalls(s *store, nth int64) {
	var n atomic.Int64
	var until time.Time
	var mu sync.Mutex
	hang := func(begin bool) time.Duration {
		mu.Lock()
		defer mu.Unlock()
		if begin {
			until = time.Now().Add(3 * easy)
		}
		return time.Until(until)
	}
	s.swap = func(ctx context.Context, key string, prev driver.Version, value []byte) (driver.Version, error) {
		time.Sleep(hang(n.Add(1) == nth+1))
		return s.Store.CompareAndSwap(ctx, key, prev, value)
	}
	s.read = func(ctx context.Context, key string) (driver.Entry, error) {
		time.Sleep(hang(false))
		return s.Store.Read(ctx, key)
	}
}

// Two leaders are a breach, even if one of them loses its lease afterwards.
func TestBreachesAreNotRetried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := sound()
		frozenAndUnchecked(s)
		began := time.Now()
		r := tryIn(stallable(), caseNamed(t, "a renewed lease keeps the others out"), s.harness())
		if r.Logs > 0 || !strings.Contains(strings.Join(r.Failures, "\n"), "went on") {
			t.Errorf("after %v and %d stalls: %q", time.Since(began), r.Logs, r.Failures)
		}
	})
}

// The limits of the store are not hidden.
func TestLineHidesPushes(t *testing.T) {
	got, want := able.Answers(t.Context(), newLine(able.Store{})), able.Answers(t.Context(), able.Store{})
	maps.DeleteFunc(want, func(name, _ string) bool { return name != "Bounded" })
	if !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
