package doctor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tenure-go/tenure/clock"
	"github.com/tenure-go/tenure/cmd/internal/fault"
	"github.com/tenure-go/tenure/cmd/internal/stores/kind"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/faults"
	"github.com/tenure-go/tenure/driver/memory"
	"github.com/tenure-go/tenure/driver/race"
)

// fake is a sound store with some other methods.
type fake struct {
	driver.Store
	delay        time.Duration
	pace         time.Duration // a write sooner after another one is refused
	written      time.Time
	read, write  error
	careless     bool
	unlisted     error
	rights       error
	found        []driver.Finding
	uninspected  error
	deaf         bool // its watches push nothing
	noInspection bool
}

func (f *fake) Read(ctx context.Context, key string) (driver.Entry, error) {
	time.Sleep(f.delay)
	if f.read != nil {
		return driver.Entry{}, f.read
	}
	return f.Store.Read(ctx, key)
}

func (f *fake) CompareAndSwap(ctx context.Context, key string, prev driver.Version, value []byte) (driver.Version, error) {
	time.Sleep(f.delay)
	if f.write != nil {
		return "", f.write
	}
	if time.Since(f.written) < f.pace {
		return "", errThrottled
	}
	f.written = time.Now()
	if f.careless {
		for {
			e, _ := f.Store.Read(ctx, key)
			if v, err := f.Store.CompareAndSwap(ctx, key, e.Version, value); err == nil {
				return v, nil
			}
		}
	}
	return f.Store.CompareAndSwap(ctx, key, prev, value)
}

func (f *fake) Abilities() driver.Abilities {
	a := driver.AbilitiesOf(f.Store)
	a.Inspector = f
	if f.noInspection {
		a.Inspector = nil
	}
	if f.deaf {
		a.Watcher = deaf{f}
	}
	return a
}

func (f *fake) Keys(ctx context.Context) ([]string, error) { return nil, f.unlisted }

func (f *fake) Inspect(context.Context, time.Duration) ([]driver.Finding, error) {
	return f.found, f.uninspected
}

func (f *fake) CheckRights(context.Context, string) error { return f.rights }

type deaf struct{ driver.Store }

func (deaf) Watch(context.Context, string, func(driver.Entry)) (func(), error) {
	return func() {}, nil
}

var (
	errDenied = fmt.Errorf("%w: no", driver.ErrDenied)
	errAway   = errors.New("away")

	errThrottled = errors.New("429")
)

// requires fails unless a row of the check has this status and text.
func (r *Report) requires(t *testing.T, check string, status Status, text string) {
	t.Helper()
	for _, row := range r.Checks {
		if row.Check == check && row.Status == status && strings.Contains(row.Seen+" "+row.Remedy, text) {
			return
		}
	}
	t.Errorf("want %s %s: %s\ngot %+v", check, status, text, r.Checks)
}

func find(s driver.Severity) []driver.Finding {
	return []driver.Finding{{Severity: s, Setting: "replicas", Problem: "there is one", Remedy: "add two"}}
}

// want is a row of a report.
type want struct {
	check  string
	status Status
	text   string
}

func TestExamine(t *testing.T) {
	for _, c := range []struct {
		why     string
		store   driver.Store
		verdict Status
		wants   []want
	}{
		{"a sound store", &fake{}, OK, []want{
			{"right to read", OK, ""}, {"right to write", OK, ""}, {"right to list", OK, ""}, {"settings", OK, "nothing unsafe"},
			{"conditional writes", OK, "9 of 9 races of 16"}, {"reads", OK, "(100 calls)"}, {"writes", OK, "p99 0.00"},
			{"pushes", OK, "(100 calls)"}, {"lease", OK, "sensible 1s: a failover takes up to 1s"}, {"clock rate", OK, "0 ppm"}, {"cost", OK, "$0"},
		}},
		{"it does not push", memory.NewPolled(), OK, []want{
			{"pushes", OK, "does not push: followers read it each 15s"}, {"lease", OK, "sensible 1s: a failover takes up to 2s"}}},
		{"conditions are ignored", &fake{careless: true}, Unsafe, []want{{"conditional writes", Unsafe, "more than one gets a success"}}},
		{"the driver knows that", &fake{write: driver.ErrUnfit, rights: driver.ErrUnfit}, Unsafe, []want{{"right to write", Unknown, "unfit"}, {"conditional writes", Unsafe, "unfit"}, {"writes", Unknown, "unfit, see conditional writes"}}},
		{"answers are lost, and writes applied", faults.New(memory.New(), 1, faults.Plan{Chances: faults.Chances{faults.LoseAnswer: 0.05}}), Warning, []want{
			{"conditional writes", OK, ""}, {"writes", Warning, "had no success"}, {"reads", Warning, "had no success"}}},
		{"it is slow", &fake{delay: 2 * time.Second}, Warning, []want{
			{"reads", OK, "p50 2000"}, {"lease", Warning, "use a lease of at least 16s"}}},
		{"it is too slow", &fake{delay: time.Minute}, Unknown, []want{{"writes", Unknown, "deadline"}, {"lease", Unknown, "not known"}}},
		{"no right to read", &fake{read: errDenied}, Warning, []want{
			{"right to read", Warning, "grant it"}, {"reads", Unknown, "a right is missing, see above"}, {"lease", Unknown, "not known"}}},
		{"no right to write", &fake{rights: errDenied, write: errDenied}, Warning, []want{
			{"right to write", Warning, "grant it"}, {"conditional writes", Unknown, "a right is missing"}, {"pushes", Unknown, "no write"}}},
		{"only a write shows that", &fake{noInspection: true, write: errDenied}, Warning, []want{
			{"right to write", Warning, "grant it"}, {"settings", Unknown, "no check"}, {"right to list", Unknown, "cannot list"}}},
		{"only a write shows the right", &fake{noInspection: true}, Unknown, []want{{"right to write", OK, "succeeded"}}},
		{"no right to list", &fake{unlisted: errDenied}, Warning, []want{{"right to list", Warning, "grant it"}}},
		{"an unsafe setting", &fake{found: find(driver.Unsafe)}, Unsafe, []want{{"settings", Unsafe, "replicas: there is one add two"}}},
		{"a risky setting", &fake{found: find(driver.Warning)}, Warning, []want{{"settings", Warning, "replicas"}}},
		{"advice", &fake{found: find(driver.Advice)}, OK, []want{{"settings", OK, "advice: replicas"}}},
		{"settings cannot be read", &fake{uninspected: errAway}, Unknown, []want{{"settings", Unknown, "could not be checked: away"}}},
		{"nothing is pushed", &fake{deaf: true}, Warning, []want{{"pushes", Warning, "no push came within 2s"}}},
		{"it does not answer", &fake{read: errAway, write: errAway, rights: errAway, unlisted: errAway, uninspected: errAway}, Unknown, []want{
			{"right to read", Unknown, "away"}, {"right to write", Unknown, "away"}, {"right to list", Unknown, "away"}, {"settings", Unknown, "away"},
			{"conditional writes", Unknown, "away"}, {"reads", Unknown, "away"}, {"writes", Unknown, "away"}, {"lease", Unknown, ""}}},
	} {
		t.Run(c.why, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				if f, ok := c.store.(*fake); ok {
					f.Store = memory.New()
				}
				r := patient(c.store).Examine(t.Context())
				for _, w := range c.wants {
					r.requires(t, w.check, w.status, w.text)
				}
				// that of the time of day depends on the machine
				r.Checks = slices.DeleteFunc(r.Checks, func(row Row) bool { return row.Check == "time of day" })
				if v := r.worst(); v != c.verdict {
					t.Errorf("the verdict is %s, want %s\n%+v", v, c.verdict, r.Checks)
				}
			})
		})
	}
}

func patient(s driver.Store) *Doctor {
	return &Doctor{Store: s, Lease: 15 * time.Second, Key: race.NewKey(), Explain: func(err error) error {
		if errors.Is(err, driver.ErrDenied) {
			return fault.New("grant it", "%w", err)
		}
		return err
	}}
}

// A cell stays only if something was written, and there is one, which is used again.
func TestOneCellStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memory.New()
		d := patient(s)
		for range 2 {
			if r := d.Examine(t.Context()); r.Left != d.Key {
				t.Errorf("left %q", r.Left)
			}
		}
		if all, err := s.Keys(t.Context()); len(all) != 1 || all[0] != d.Key {
			t.Errorf("%q, %v", all, err)
		}
		if r := patient(&fake{Store: memory.New(), write: errDenied}).Examine(t.Context()); r.Left != "" {
			t.Errorf("without a write: %q", r.Left)
		}
	})
}

// A store that limits the pace of writes throttles no write of the measurement.
func TestPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := patient(&fake{Store: memory.New()})
		d.Pace = time.Second
		d.able, d.report = driver.AbilitiesOf(d.Store), &Report{}
		d.Store.(*fake).pace = d.Pace
		d.measureWrites(t.Context())
		d.report.requires(t, "writes", OK, "(5 calls)")
		d.Pace = 0
		d.measureWrites(t.Context())
		d.report.requires(t, "writes", Unknown, "429")
	})
}

func TestChanged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{Store: memory.New()}
		d := patient(f)
		first := d.Examine(t.Context())
		f.delay = time.Millisecond
		second := d.Examine(t.Context())
		if all := second.Changed(first); len(all) != 0 {
			t.Errorf("other figures are no change: %v", all)
		}
		f.found = find(driver.Warning)
		if all := d.Examine(t.Context()).Changed(second); len(all) != 1 || all[0].Status != Warning {
			t.Errorf("a new finding: %v", all)
		}
	})
}

func TestCost(t *testing.T) {
	list := kind.Prices{Read: 0.0004, Write: 0.005, List: "the list", Date: "2026-11-21"}
	for _, c := range []struct {
		why    string
		billed bool
		prices kind.Prices
		status Status
		text   string
	}{
		{"requests cost nothing", false, kind.Prices{}, OK, "$0"},
		{"docs/object-storage.md has the same figure", true, list, OK, "$2.73: 518400 writes and 345600 reads a month (3 members, lease 15s); the list on 2026-11-21"},
		{"another server", true, kind.Prices{}, OK, "no prices of this server are known"},
	} {
		t.Run(c.why, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := patient(memory.New())
				d.Billed, d.Prices = c.billed, c.prices
				r := d.Examine(t.Context())
				r.requires(t, "cost", c.status, c.text)
				if known := r.DollarsPerMonth != nil; known != (!c.billed || c.prices.List != "") {
					t.Errorf("known: %v", known)
				}
			})
		})
	}
}

func TestTimeOfDay(t *testing.T) {
	for _, c := range []struct {
		s      synchronization
		err    error
		status Status
		text   string
	}{
		{synchronization{true, 8 * time.Millisecond, -12.3}, nil, OK, "synchronized within 8ms, rate corrected by -12 ppm"},
		{synchronization{}, nil, OK, "advice: not synchronized"},
		{synchronization{}, errAway, Unknown, "could not be checked: away"},
	} {
		d := &Doctor{report: &Report{}}
		d.checkTimeOfDay(c.s, c.err)
		d.report.requires(t, "time of day", c.status, c.text)
	}
}

// skewed is a clock whose monotonic clock runs faster than the hardware.
type skewed struct{ clock.Standard }

func (skewed) Now() clock.Reading {
	r := clock.Standard{}.Now()
	r.Mono += r.Mono / 40
	return r
}

func TestClockRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &Doctor{clock: skewed{}, report: &Report{}}
		d.checkClock(d.clock.Now().Instant)
		d.report.requires(t, "clock rate", Unsafe, "25000 ppm")
	})
}

func TestPercentiles(t *testing.T) {
	s := sample{failed: 2}
	for i := range 100 {
		s.took = append(s.took, time.Duration(100-i)*time.Millisecond)
	}
	if l := *s.latency(); l != (Latency{102, 2, 50, 90, 99, 100}) {
		t.Errorf("got %v", l)
	}
	s = sample{took: []time.Duration{time.Second}}
	if l := *s.latency(); l != (Latency{1, 0, 1000, 1000, 1000, 1000}) {
		t.Errorf("of one call: %v", l)
	}
}

// Inspect has the findings of both checks, and says if the race decides nothing.
func TestInspect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{Store: memory.New(), careless: true, found: find(driver.Warning)}
		found, undecided, err := Inspect(t.Context(), f, time.Second)
		if len(found) < 2 || found[0].Severity != driver.Warning || found[1].Severity != driver.Unsafe || undecided != nil || err != nil {
			t.Errorf("found %v, %v, %v", found, undecided, err)
		}
		f.careless, f.write = false, errDenied
		if found, undecided, err = Inspect(t.Context(), f, time.Second); len(found) != 1 || !errors.Is(undecided, driver.ErrDenied) || err != nil {
			t.Errorf("without the right to write: %v, %v, %v", found, undecided, err)
		}
		f.uninspected = errAway
		if _, _, err = Inspect(t.Context(), f, time.Second); !errors.Is(err, errAway) {
			t.Errorf("without an answer: %v", err)
		}
	})
}

// A candidate that cannot write the record of its election never leads.
func TestRightsOfAnElection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := patient(&fake{Store: memory.New(), rights: errDenied})
		d.Election = "billing"
		r := d.Examine(t.Context())
		r.requires(t, "right to read", OK, `"billing"`)
		r.requires(t, "right to write", Unsafe, "grant it")
		r.requires(t, "conditional writes", OK, "")
	})
}
