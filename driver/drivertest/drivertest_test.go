package drivertest

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/memory"
	"github.com/tenure-go/tenure/internal/test/kit"
)

// try runs one case in a goroutine, because the case may end it.
func try(c testCase, h Harness) *kit.Recorder { return tryIn(kit.VirtualTime(), c, h) }

func tryIn(time kit.Timing, c testCase, h Harness) *kit.Recorder {
	return kit.Record(func(r *kit.Recorder) { c.run(newTrial(r, h, time)) })
}

func caseNamed(t *testing.T, name string) testCase {
	for _, c := range cases() {
		if c.name == name {
			return c
		}
	}
	t.Fatalf("there is no case %q", name)
	return testCase{}
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

// Every case must run and pass on a sound store. A case that is always skipped would prove nothing.
func TestSoundStorePasses(t *testing.T) {
	for _, c := range cases() {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := try(c, sound().harness())
				if len(r.Failures) > 0 || r.Skipped != "" {
					t.Errorf("failures %q, skipped %q", r.Failures, r.Skipped)
				}
			})
		})
	}
}

func TestStoreWithoutAbilitiesIsSkipped(t *testing.T) {
	type plain struct{ driver.Store }
	skipped := 0
	for _, c := range cases() {
		var r *kit.Recorder
		synctest.Test(t, func(*testing.T) { r = try(c, Harness{Store: plain{memory.NewPolled()}, Rounds: 1}) })
		// Without a limit it would have to accept any key.
		if len(r.Failures) > 0 && c.name != "keys are distinct" {
			t.Errorf("%s: %q", c.name, r.Failures)
		}
		if r.Skipped != "" {
			skipped++
		}
	}
	if want := len(watchCases()) + len(watchStopCases()); skipped <= want {
		t.Errorf("%d cases skipped; want all %d of watches and more", skipped, want)
	}
}

// In a bubble the kit's time limits cost no real time. A store that hangs does so for an hour of
// virtual time.
func TestBrokenStoresFail(t *testing.T) {
	for _, b := range broken() {
		t.Run(strings.ReplaceAll(b.name, " ", "-"), func(t *testing.T) {
			for _, name := range b.fails {
				c := caseNamed(t, name)
				synctest.Test(t, func(t *testing.T) {
					s := sound()
					b.damage(s)
					if r := try(c, s.harness()); len(r.Failures) == 0 {
						t.Errorf("%q passes (skipped: %q)", name, r.Skipped)
					}
					time.Sleep(2 * time.Hour)
				})
			}
		})
	}
}

func TestVersionsOfContentMustBeDeclared(t *testing.T) {
	c := caseNamed(t, "the same bytes again are another version")
	if r := try(c, Harness{Store: memory.New(), ContentVersions: true}); r.Skipped == "" {
		t.Error("the case ran")
	}
}

func BenchmarkMemory(b *testing.B) {
	Benchmark(b, func(testing.TB) Harness { return sound().harness() })
}
