package drivertest

import (
	"bytes"
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/memory"
	"github.com/tenure-go/tenure/internal/record"
	"github.com/tenure-go/tenure/internal/test/kit"
)

func electionCaseNamed(t *testing.T, name string) testCase {
	for _, c := range electionCases() {
		if c.name == name {
			return c
		}
	}
	t.Fatalf("there is no election case %q", name)
	return testCase{}
}

func TestElectionCasesExplainThemselves(t *testing.T) {
	names := map[string]bool{}
	for _, c := range electionCases() {
		if names[c.name] || c.name == "" || c.why == "" || c.run == nil {
			t.Errorf("case %q is named twice or lacks something", c.name)
		}
		names[c.name] = true
	}
}

func TestElectionsOverSoundStoresPass(t *testing.T) {
	harnesses := map[string]func() Harness{
		"watched": func() Harness { return sound().harness() },
		"polled":  func() Harness { return polled(sound()) },
	}
	for name, open := range harnesses {
		for _, c := range electionCases() {
			t.Run(name+"/"+c.name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					if r := try(c, open()); len(r.Failures) > 0 || r.Skipped != "" {
						t.Errorf("failures %q, skipped %q", r.Failures, r.Skipped)
					}
				})
			})
		}
	}
}

// polled hides the watch of a store.
func polled(s *store) Harness {
	type plain struct {
		driver.Store
		driver.Bounded
	}
	h := s.harness()
	h.Store = plain{s, s}
	h.Peer = h.Store
	return h
}

func TestElectionsOnAPlainStore(t *testing.T) {
	type plain struct{ driver.Store }
	for _, c := range electionCases() {
		synctest.Test(t, func(t *testing.T) {
			r := try(c, Harness{Store: plain{memory.NewPolled()}})
			if len(r.Failures) > 0 || (r.Skipped != "") != (c.name == "a removed record ends the term") {
				t.Errorf("%s: failures %q, skipped %q", c.name, r.Failures, r.Skipped)
			}
		})
	}
}

// brokenElections are stores on which elections go wrong: what a case of elections is to catch, whether or not one of
// the contract would.
func brokenElections() []breakage {
	return []breakage{
		{"every write conflicts", []string{"a first candidate leads"}, alwaysConflicts},
		{"swap never checks, and others see the first record for ever",
			[]string{"a renewed lease keeps the others out"}, frozenAndUnchecked},
		{"everybody sees the first record for ever", []string{
			"a release lets the next one lead", "a leader hears that it is asked to hand over",
		}, frozen},
		{"the floor stands still", []string{"tokens grow over releases and removals"}, floorStandsStill},
		{"nothing replaces a delete marker", []string{"a removed record ends the term"}, markersStay},
		{"a stranger's bytes read as nothing", []string{"bytes of others are left alone"}, hidesStrangers},
		{"values come back with other words in them", []string{
			"a claim whose answer was lost is recognised", "a claim that was delivered twice is recognised",
		}, changesNonces},
		{"a cell stays with its holder",
			[]string{"a silent leader is replaced, and not too soon"}, cellStaysWithHolder},
	}
}

func TestElectionsOverBrokenStoresFail(t *testing.T) {
	for _, b := range brokenElections() {
		t.Run(strings.ReplaceAll(b.name, " ", "-"), func(t *testing.T) {
			for _, name := range b.fails {
				c := electionCaseNamed(t, name)
				synctest.Test(t, func(t *testing.T) {
					s := sound()
					b.damage(s)
					if r := try(c, s.harness()); len(r.Failures) == 0 {
						t.Errorf("%q passes (skipped: %q)", name, r.Skipped)
					}
				})
			}
		})
	}
}

// stallable is time in which the machine may stall, until a limit as tests have one.
func stallable() kit.Timing {
	end := time.Now().Add(10 * time.Minute)
	return kit.Timing{Left: func() time.Duration { return max(time.Until(end), time.Second) }, Stalls: true}
}

// A lease that is lost to a stall says nothing about the store. All calls hang for longer than that.
func TestStalledElectionsAreRepeated(t *testing.T) {
	noticed := 0
	for _, c := range electionCases() {
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

func TestElectionsOverBrokenStoresFailBetweenStalls(t *testing.T) {
	for _, b := range brokenElections() {
		t.Run(strings.ReplaceAll(b.name, " ", "-"), func(t *testing.T) {
			for _, name := range b.fails {
				c := electionCaseNamed(t, name)
				synctest.Test(t, func(t *testing.T) {
					s := sound()
					b.damage(s)
					if r := tryIn(stallable(), c, s.harness()); len(r.Failures) == 0 {
						t.Errorf("%q passes (skipped: %q)", name, r.Skipped)
					}
				})
			}
		})
	}
}

// Two leaders are a breach, though one of them loses its lease afterwards.
func TestBreachesAreNotTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := sound()
		frozenAndUnchecked(s)
		began := time.Now()
		r := tryIn(stallable(), electionCaseNamed(t, "a renewed lease keeps the others out"), s.harness())
		if r.Logs > 0 || !strings.Contains(strings.Join(r.Failures, "\n"), "went on") {
			t.Errorf("after %v and %d stalls: %q", time.Since(began), r.Logs, r.Failures)
		}
	})
}

// It is for elections as for the contract: a case that nothing fails might as well not be there.
func TestEveryElectionCaseCatchesSomething(t *testing.T) {
	caught := map[string]bool{}
	for _, b := range brokenElections() {
		for _, name := range b.fails {
			caught[name] = true
		}
	}
	for _, c := range electionCases() {
		if !caught[c.name] {
			t.Errorf("no broken store is known that fails %q", c.name)
		}
	}
}

func alwaysConflicts(s *store) {
	s.swap = func(context.Context, string, driver.Version, []byte) (driver.Version, error) {
		return "", driver.ErrConflict
	}
}

// frozen reads show the first value of a key for ever, and watches nothing.
func frozen(s *store) {
	var first sync.Map
	s.read = func(ctx context.Context, key string) (driver.Entry, error) {
		e, err := s.Store.Read(ctx, key)
		if err != nil || e.Absent() {
			return e, err
		}
		seen, _ := first.LoadOrStore(key, e)
		return seen.(driver.Entry), nil
	}
	s.watch = func(context.Context, string, func(driver.Entry)) (func(), error) { return func() {}, nil }
}

func frozenAndUnchecked(s *store) {
	frozen(s)
	neverChecks(s)
}

func floorStandsStill(s *store) {
	s.read = func(ctx context.Context, key string) (driver.Entry, error) {
		e, err := s.Store.Read(ctx, key)
		e.Floor = 1
		return e, err
	}
	s.watch = func(ctx context.Context, key string, see func(driver.Entry)) (func(), error) {
		return s.Store.Watch(ctx, key, func(e driver.Entry) {
			e.Floor = 1
			see(e)
		})
	}
}

// refuses has writes conflict that go against what is there.
func refuses(s *store, against func(now driver.Entry, value []byte) bool) {
	s.swap = func(ctx context.Context, key string, prev driver.Version, value []byte) (driver.Version, error) {
		if e, err := s.Store.Read(ctx, key); err != nil || against(e, value) {
			return "", driver.ErrConflict
		}
		return s.Store.CompareAndSwap(ctx, key, prev, value)
	}
}

func markersStay(s *store) {
	refuses(s, func(now driver.Entry, _ []byte) bool { return now.Absent() && !now.Pristine && now.Version != "" })
}

func cellStaysWithHolder(s *store) {
	refuses(s, func(now driver.Entry, value []byte) bool {
		holder, err := record.Decode(now.Value)
		next, _ := record.Decode(value)
		return err == nil && holder.Held() && next.Incarnation != holder.Incarnation
	})
}

func hidesStrangers(s *store) {
	s.read = func(ctx context.Context, key string) (driver.Entry, error) {
		e, err := s.Store.Read(ctx, key)
		if !bytes.HasPrefix(e.Value, []byte("{")) {
			e.Value = nil
		}
		return e, err
	}
}

func changesNonces(s *store) {
	rewrites(s, func(value []byte) []byte {
		return bytes.Replace(value, []byte(`"nonce":"`), []byte(`"nonce":"x`), 1)
	})
}
