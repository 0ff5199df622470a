package race_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/faults"
	"github.com/tenure-go/tenure/driver/memory"
	"github.com/tenure-go/tenure/driver/race"
)

// fake is a sound store with another way to write.
type fake struct {
	driver.Store
	swap func(ctx context.Context, s driver.Store, key string, prev driver.Version, value []byte) (driver.Version, error)
	read func(e driver.Entry) driver.Entry
}

func (f *fake) CompareAndSwap(ctx context.Context, key string, prev driver.Version, value []byte) (driver.Version, error) {
	if f.swap == nil {
		return f.Store.CompareAndSwap(ctx, key, prev, value)
	}
	return f.swap(ctx, f.Store, key, prev, value)
}

func (f *fake) Read(ctx context.Context, key string) (driver.Entry, error) {
	e, err := f.Store.Read(ctx, key)
	if f.read != nil {
		e = f.read(e)
	}
	return e, err
}

// force writes whatever the version is.
func force(ctx context.Context, s driver.Store, key string, value []byte) (driver.Version, error) {
	for {
		e, err := s.Read(ctx, key)
		if err != nil {
			return "", err
		}
		if v, err := s.CompareAndSwap(ctx, key, e.Version, value); !errors.Is(err, driver.ErrConflict) {
			return v, err
		}
	}
}

// ignoring writes without a look at the version where the condition says so.
func ignoring(where func(prev driver.Version) bool) *fake {
	return &fake{Store: memory.New(), swap: func(ctx context.Context, s driver.Store, key string, prev driver.Version, value []byte) (driver.Version, error) {
		if where(prev) {
			return force(ctx, s, key, value)
		}
		return s.CompareAndSwap(ctx, key, prev, value)
	}}
}

// inTwoSteps checks the version first, and writes a moment later.
func inTwoSteps() *fake {
	return &fake{Store: memory.New(), swap: func(ctx context.Context, s driver.Store, key string, prev driver.Version, value []byte) (driver.Version, error) {
		if e, err := s.Read(ctx, key); err != nil || e.Version != prev && (prev != "" || !e.Absent()) {
			return "", errors.Join(err, driver.ErrConflict)
		}
		time.Sleep(time.Millisecond)
		return force(ctx, s, key, value)
	}}
}

// refusing applies the writes that it refuses, once they have lost a race.
func refusing() *fake {
	return &fake{Store: memory.New(), swap: func(ctx context.Context, s driver.Store, key string, prev driver.Version, value []byte) (driver.Version, error) {
		v, err := s.CompareAndSwap(ctx, key, prev, value)
		if errors.Is(err, driver.ErrConflict) {
			_, _ = force(ctx, s, key, value)
		}
		return v, err
	}}
}

// failing returns an error for each write.
func failing(err error) *fake {
	return &fake{Store: memory.New(), swap: func(context.Context, driver.Store, string, driver.Version, []byte) (driver.Version, error) {
		return "", err
	}}
}

// behind shows every other read the state before the last.
func behind() *fake {
	var mu sync.Mutex
	var last driver.Entry
	return &fake{Store: memory.New(), read: func(e driver.Entry) driver.Entry {
		mu.Lock()
		defer mu.Unlock()
		if bytes.Equal(last.Value, e.Value) {
			return e
		}
		stale := last
		last = e
		return stale
	}}
}

func shaky(chances faults.Chances) driver.Store {
	return faults.New(memory.New(), 1, faults.Plan{Chances: chances, MaxDelay: 10 * time.Millisecond})
}

var (
	errAway   = errors.New("no answer")
	errDenied = errors.Join(driver.ErrDenied, errors.New("write"))
)

func TestProbe(t *testing.T) {
	for _, c := range []struct {
		why     string
		store   func() driver.Store
		problem string // of an unsafe store
		err     error  // of a store on which no race is decided
	}{
		{"a sound store has one winner", func() driver.Store { return memory.New() }, "", nil},
		{"lost answers are unknown outcomes", func() driver.Store { return shaky(faults.Chances{faults.LoseAnswer: 0.1}) }, "", nil},
		{"so are writes that land late", func() driver.Store { return shaky(faults.Chances{faults.LandLate: 0.1}) }, "", nil},
		{"elections allow for stale reads", func() driver.Store { return behind() }, "", nil},
		{"no version is heeded", func() driver.Store { return ignoring(func(driver.Version) bool { return true }) }, "more than one gets a success", nil},
		{"creation is not heeded", func() driver.Store { return ignoring(func(v driver.Version) bool { return v == "" }) }, "under the condition that it is absent", nil},
		{"check and write are two steps", func() driver.Store { return inTwoSteps() }, "more than one gets a success", nil},
		{"refused writes are applied", func() driver.Store { return refusing() }, "the write of a refused one is there", nil},
		{"the adapter knows of a fault", func() driver.Store { return failing(driver.ErrUnfit) }, "unfit", nil},
		{"without the right nothing is decided", func() driver.Store { return failing(errDenied) }, "", driver.ErrDenied},
		{"nor without answers", func() driver.Store { return failing(errAway) }, "", errAway},
	} {
		t.Run(c.why, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				decided, found, err := race.Probe(t.Context(), c.store(), race.NewKey())
				if !errors.Is(err, c.err) || (c.err == nil) != (err == nil) {
					t.Fatalf("got error %v, want %v", err, c.err)
				}
				var all []string
				for _, f := range found {
					all = append(all, f.String())
				}
				switch text := strings.Join(all, "\n"); {
				case c.problem == "" && len(found) > 0, !strings.Contains(text, c.problem), len(all) > 4:
					t.Errorf("want %q, found:\n%s", c.problem, text)
				case err == nil && c.problem == "" && decided == 0:
					t.Error("nothing is decided")
				}
			})
		})
	}
}

// A write from the version that a race has replaced must be refused, even if races are sound.
func TestProbeWritesFromAnOldVersion(t *testing.T) {
	var mu sync.Mutex
	writes := 0
	s := &fake{Store: memory.New(), swap: func(ctx context.Context, s driver.Store, key string, prev driver.Version, value []byte) (driver.Version, error) {
		mu.Lock()
		writes++
		after := writes == 2*(race.Contenders+2)-1 // the write after the second race
		mu.Unlock()
		if after {
			return force(ctx, s, key, value)
		}
		return s.CompareAndSwap(ctx, key, prev, value)
	}}
	_, found, err := race.Probe(t.Context(), s, race.NewKey())
	if err != nil || len(found) != 1 || !strings.Contains(found[0].Problem, "from an old version") || found[0].Severity != driver.Unsafe {
		t.Errorf("found %v, %v", found, err)
	}
}

// Two probes of one cell disturb each other, and find no fault.
func TestProbesOfOneCell(t *testing.T) {
	s, key := memory.New(), race.NewKey()
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			if _, found, err := race.Probe(t.Context(), s, key); len(found) > 0 {
				t.Errorf("found %v, %v", found, err)
			}
		})
	}
	all.Wait()
	e, err := s.Read(t.Context(), key)
	if err != nil || !race.IsProbe(e.Value) || len(e.Value) >= 100 {
		t.Errorf("left %q, %v", e.Value, err)
	}
}

func TestIsProbe(t *testing.T) {
	for value, want := range map[string]bool{
		string(race.NewValue()): true, "": false, "{}": false, `{"format":"tenure-ticks/1"}`: false, `{"leaderID":"a","term":1}`: false,
	} {
		if race.IsProbe([]byte(value)) != want {
			t.Errorf("%q: not %v", value, want)
		}
	}
}
