package tenure_test

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver/memory"
)

// leaseInStore returns the lease of the record in the cell.
func leaseInStore(t *testing.T, store operated) time.Duration {
	t.Helper()
	entry, err := store.Read(context.Background(), key)
	if err != nil {
		t.Fatal(err)
	}
	var r struct{ LeaseMillis int64 }
	if err := json.Unmarshal(entry.Value, &r); err != nil {
		t.Fatal(err)
	}
	return time.Duration(r.LeaseMillis) * time.Millisecond
}

func reconfigure(t *testing.T, e *tenure.Election, change func(*tenure.Config)) {
	t.Helper()
	if err := e.Reconfigure(change); err != nil {
		t.Fatal(err)
	}
}

// configOf returns the settings as they were given.
func configOf(t *testing.T, e *tenure.Election) (cfg tenure.Config) {
	t.Helper()
	reconfigure(t, e, func(c *tenure.Config) { cfg = *c })
	return cfg
}

func TestChangedLeaseTakesEffectWithTheNextRenewal(t *testing.T) {
	bubbles(t, func(t *testing.T, store operated) {
		a, term := elect(t, store, "a", nil)
		before := term.Remaining()
		reconfigure(t, a.election, func(c *tenure.Config) { c.Lease = 6 * time.Second })
		if now := term.Remaining(); now != before {
			t.Errorf("%v were left of the term, and %v after the lease was shortened", before, now)
		}
		if got := leaseInStore(t, store); got != lease {
			t.Errorf("a lease of %v is in the store before any renewal", got)
		}
		time.Sleep(2*time.Second + time.Millisecond) // a third of the new lease
		if got := leaseInStore(t, store); got != 6*time.Second {
			t.Errorf("a lease of %v is in the store after the renewal", got)
		}
		if left := term.Remaining(); left > 6*time.Second || left <= 0 {
			t.Errorf("%v are left of a lease of 6 s", left)
		}
	})
}

// Work that needs more time to stop must have it from now on, not from the next renewal.
func TestLargerStopWithinTakesEffectAtOnce(t *testing.T) {
	bubbles(t, func(t *testing.T, store operated) {
		a, term := elect(t, store, "a", nil)
		time.Sleep(lease + time.Second) // no renewal is under way
		renewed := term.Renewed()
		reconfigure(t, a.election, func(c *tenure.Config) { c.StopWithin = time.Second })
		synctest.Wait()
		if left := term.Remaining(); !closed(renewed) || left < lease/2 {
			t.Errorf("renewed: %v; %v are left", closed(renewed), left)
		}
	})
}

// A shorter lease does not shorten a lease that was promised. The successor waits for the lease in
// the record, not for its own.
func TestFollowerWithAShorterLeaseWaitsForTheLeaseInTheRecord(t *testing.T) {
	bubbles(t, func(t *testing.T, store operated) {
		f := faulty(t, store)
		_, term := elect(t, f, "a", nil)
		b := start(t, mustNew(t, store, "b", nil), holdOn)
		time.Sleep(30 * time.Second)
		reconfigure(t, b.election, func(c *tenure.Config) { c.Lease = 3 * time.Second })
		f.Partition()
		within(t, time.Minute, b.won, "term of b")
		if err := term.Err(); err == nil {
			t.Errorf("b leads while %v are left of a's term", term.Remaining())
		}
		f.Heal()
	})
}

func TestReconfigureReportsAllProblemsAndChangesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := mustNew(t, memory.New(), "a", nil)
		before := configOf(t, e)
		err := e.Reconfigure(func(c *tenure.Config) {
			c.Lease, c.Tuning.Drift, c.Tuning.Retry = 2*time.Hour, 0.9, []time.Duration{3 * time.Hour}
		})
		for _, field := range []string{"Lease", "Drift", "Retry[0]"} {
			if err == nil || !strings.Contains(err.Error(), field) {
				t.Errorf("%v does not name %s", err, field)
			}
		}
		if err := e.Reconfigure(func(c *tenure.Config) { c.ID = "b" }); err == nil || !strings.Contains(err.Error(), `cannot be changed to "b"`) {
			t.Errorf("changing the ID: %v", err)
		}
		if now := configOf(t, e); now.Lease != before.Lease || now.ID != "a" {
			t.Errorf("a refused change left %+v", now)
		}
	})
}

// A setting that derives from a changed field follows it. A setting that was given stays.
func TestReconfigureSeesTheGivenSettings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memory.New()
		e := mustNew(t, store, "a", func(c *tenure.Config) { c.Metadata = map[string]string{"k": "v"} })
		cfg := configOf(t, e)
		if cfg.Tuning.Renew != 0 || cfg.ID != "a" || cfg.Metadata["k"] != "v" {
			t.Errorf("given %+v", cfg)
		}
		cfg.Metadata["k"] = "changed"
		if configOf(t, e).Metadata["k"] != "v" {
			t.Error("the caller's map is the election's")
		}
	})
}

func TestReconfigureConcurrently(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memory.New()
		ctx, cancel := context.WithCancel(t.Context())
		var members sync.WaitGroup
		for _, id := range []string{"a", "b", "c"} {
			e := mustNew(t, store, id, func(c *tenure.Config) { c.Lease = 200 * time.Millisecond })
			members.Go(func() { _ = e.Run(ctx, holdOn) })
			members.Go(func() {
				for i := range 200 {
					err := e.Reconfigure(func(c *tenure.Config) {
						c.Lease = time.Duration(150+i) * time.Millisecond
						c.Tuning.NoWatch, c.Address = i%3 == 0, id
					})
					if err != nil {
						t.Error(err)
					}
					_ = e.Status()
					// Elections go on during the changes.
					time.Sleep(time.Duration(i%3) * time.Millisecond)
				}
			})
		}
		seen := mustNew(t, store, "observer", func(c *tenure.Config) { c.Lease = time.Second })
		wait, stop := context.WithTimeout(ctx, time.Minute)
		defer stop()
		if _, err := seen.Wait(wait, func(s tenure.Status) bool { return s.Leader.Address != "" }); err != nil {
			t.Errorf("no changed address was published: %v", err)
		}
		cancel()
		members.Wait()
	})
}

func TestStatusShowsHowAMemberFollows(t *testing.T) {
	bubbles(t, func(t *testing.T, store operated) {
		elect(t, store, "a", nil)
		b := start(t, mustNew(t, store, "b", nil), holdOn)
		follows := func(when string, pushed bool) {
			t.Helper()
			s := b.election.Status()
			if s.Pushed != pushed || !s.Confirmed || s.Leader.ID != "a" || s.LeaderSince.IsZero() {
				t.Errorf("%s: pushed %v, want %v; %+v", when, s.Pushed, pushed, s)
			}
		}
		time.Sleep(2 * lease)
		_, watched := store.(*memory.Store)
		follows("at first", watched)
		reconfigure(t, b.election, func(c *tenure.Config) { c.Tuning.NoWatch = true })
		time.Sleep(3 * lease)
		follows("without a watch", false)
		reconfigure(t, b.election, func(c *tenure.Config) { c.Tuning.NoWatch = false })
		time.Sleep(lease) // when a watch begins, a read shows no new renewal
		follows("with the watch again", watched)
	})
}

// The library holds no lock during change, and no change is lost.
func TestReconfigureWithinAChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := mustNew(t, memory.New(), "a", nil)
		calls := 0
		reconfigure(t, e, func(outer *tenure.Config) {
			if calls++; calls == 1 {
				reconfigure(t, e, func(inner *tenure.Config) { inner.Address = "inner" })
			}
			outer.Lease = time.Minute
		})
		if c := configOf(t, e); calls != 2 || c.Address != "inner" || c.Lease != time.Minute {
			t.Errorf("after %d calls: %q, %v", calls, c.Address, c.Lease)
		}
	})
}
