package faults_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/faults"
	"github.com/tenure-go/tenure/driver/memory"
	"github.com/tenure-go/tenure/internal/test/able"
)

var rough = faults.Plan{
	Chances: faults.Chances{
		faults.Fail: 0.05, faults.LoseRequest: 0.05, faults.LoseAnswer: 0.05, faults.DelayBefore: 0.1, faults.DelayAfter: 0.1,
		faults.LandLate: 0.05, faults.Replay: 0.05, faults.Stale: 0.1, faults.Drop: 0.1, faults.Double: 0.1, faults.Delay: 0.1, faults.Reorder: 0.1,
	},
	MaxDelay: 50 * time.Millisecond,
	Timeout:  20 * time.Millisecond,
}

// play runs the same operations under a seed and returns the log.
func play(t *testing.T, seed uint64) (log string) {
	synctest.Test(t, func(t *testing.T) {
		f := faults.New(memory.New(), seed, rough)
		defer watch(t, f, func(driver.Entry) {})()
		for i := range 200 {
			e, err := f.Read(t.Context(), key)
			if err == nil {
				_, _ = swap(f, e.Version, fmt.Sprint(i))
			}
			f.Wait() // otherwise two late writes might race
		}
		log = f.String()
	})
	return log
}

func TestSeedDecides(t *testing.T) {
	first, again, other := play(t, 7), play(t, 7), play(t, 8)
	if first != again {
		t.Errorf("the same seed gave\n%s\nand\n%s", first, again)
	}
	if _, a, _ := strings.Cut(first, "\n"); strings.HasSuffix(other, a) {
		t.Error("another seed gave the same faults")
	}
	for _, want := range []string{"faults: seed 7, plan: fail 0.05, ", "lose answer", "land late by", "replay", "stale", "reorder", "landed"} {
		if !strings.Contains(first, want) {
			t.Errorf("%q is not in\n%s", want, first)
		}
	}
}

// Faults with a chance of one in n must not happen always or never: such a test would prove
// nothing.
func TestChancesAreKept(t *testing.T) {
	const reads = 4000
	for _, chance := range []float64{0, 0.01, 0.1, 0.5, 1} {
		t.Run(fmt.Sprint(chance), func(t *testing.T) {
			f := faults.New(memory.New(), 3, faults.Plan{Chances: faults.Chances{faults.Fail: chance}})
			failed := 0.0
			for range reads {
				if _, err := f.Read(t.Context(), key); err != nil {
					failed++
				}
			}
			if got := failed / reads; got < chance*0.8 || got > chance*1.2 {
				t.Errorf("%g of the reads failed", got)
			}
		})
	}
}

func TestDelaysStayInBounds(t *testing.T) {
	for _, tt := range []struct {
		name      string
		plan      faults.Plan
		low, high time.Duration
	}{
		{"default", faults.Plan{}, 0, 100 * time.Millisecond},
		{"highest", faults.Plan{MaxDelay: time.Second}, 0, time.Second},
		{"both", faults.Plan{MinDelay: time.Second, MaxDelay: 2 * time.Second}, time.Second, 2 * time.Second},
		{"lowest alone", faults.Plan{MinDelay: time.Second}, time.Second, time.Second},
	} {
		tt.plan.Chances = faults.Chances{faults.DelayBefore: 1}
		inBubble(t, tt.name, tt.plan, func(t *testing.T, _ *memory.Store, f faults.Store) {
			for range 100 {
				start := time.Now()
				read(t, f)
				if took := time.Since(start); took < tt.low || took > tt.high {
					t.Fatalf("a delay of %v", took)
				}
			}
		})
	}
}

func TestScriptOverridesChances(t *testing.T) {
	f := faults.New(memory.New(), 1, faults.Plan{Chances: faults.Chances{faults.Fail: 1}})
	f.Next(faults.Write, faults.None, faults.None)
	for i := range 3 {
		_, err := f.CompareAndSwap(t.Context(), fmt.Sprint(i), "", []byte("x"))
		if (err != nil) != (i == 2) {
			t.Errorf("write %d: %v", i, err)
		}
	}
	f.SetPlan(faults.Plan{})
	read(t, f)
}

func TestNextRefusesImpossibleFaults(t *testing.T) {
	tests := []struct {
		op    faults.Op
		fault faults.Fault
	}{
		{faults.Read, faults.Replay}, {faults.Read, faults.LandLate}, {faults.Write, faults.Stale}, {faults.Write, faults.Drop},
		{faults.Watch, faults.LoseAnswer}, {faults.Push, faults.Fail}, {faults.Write, faults.Fault(99)}, {faults.Op(-1), faults.None},
	}
	for _, tt := range tests {
		t.Run(fmt.Sprint(tt.op, " ", tt.fault), func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("the script would never run")
				}
			}()
			faults.New(memory.New(), 1, faults.Plan{}).Next(tt.op, tt.fault)
		})
	}
}

func TestLogIsBounded(t *testing.T) {
	f := faults.New(memory.New(), 1, faults.Plan{Chances: faults.Chances{faults.Fail: 1}})
	for range 1010 {
		_, _ = f.Read(t.Context(), key)
	}
	if log := f.Log(); len(log) != 1000 || !strings.HasSuffix(log[0], `read 11 of "billing": fail`) {
		t.Errorf("%d events, the first is %s", len(log), log[0])
	}
	if !strings.Contains(f.String(), "(10 earlier events)") {
		t.Error("the log does not say that it is cut")
	}
}

func TestAbilitiesAreThoseOfTheInnerStore(t *testing.T) {
	for name, inner := range map[string]driver.Store{"all": able.Store{}, "none": struct{ driver.Store }{memory.New()}} {
		f := faults.New(inner, 1, faults.Plan{})
		if got, want := able.Answers(t.Context(), f), able.Answers(t.Context(), inner); !maps.Equal(got, want) {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
}
