package s3lect

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"regexp"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tenure-go/tenure/driver"
)

// migrations is a small number by default. The long checks set a larger one.
var migrations = flag.Int("migrations", 12, "how `many` fleets TestRollingMigration replaces")

// migrate runs a whole migration in virtual time.
func migrate(t *testing.T, seed uint64, cond conditions) (r report) {
	t.Helper()
	synctest.Test(t, func(*testing.T) { r = newFleet(seed, cond).migrate() })
	return r
}

// The leases are shorter than S3lect's timeout, equal to it, and longer.
var leases = []time.Duration{6 * time.Second, 15 * time.Second, 30 * time.Second}

func TestRollingMigration(t *testing.T) {
	var sum totals
	t.Run("fleets", func(t *testing.T) { // it ends when all tests in it have ended
		for seed := range uint64(*migrations) {
			cond := conditions{
				skew: 5 * time.Second, lease: leases[seed%3], bare: seed%4 == 3, electors: seed%3 == 1 && seed%2 == 0,
			}
			t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
				t.Parallel()
				r := migrate(t, seed, cond)
				r.check(t, cond)
				sum.add(r)
			})
		}
	})
	t.Logf("%d times from old to new, %d back; led %.0f %% of %v; an old one went on for at most %v",
		sum.oldToNew, sum.newToOld, 100*float64(sum.led)/float64(sum.all), sum.all, sum.longest)
	// On average each seed has two and one of these.
	if sum.oldToNew < *migrations || sum.newToOld < *migrations/4 || sum.longest == 0 {
		t.Errorf("%d times from old to new and %d back: nothing is proved by that", sum.oldToNew, sum.newToOld)
	}
}

func (r report) check(t *testing.T, cond conditions) {
	t.Helper()
	for _, fault := range r.faults {
		t.Error(fault)
	}
	if r.tokenFaults > 0 && !cond.bare {
		t.Errorf("%d tokens that were not above the one before", r.tokenFaults)
	}
	if r.led < r.all/3 {
		t.Errorf("there was a leader for only %v of %v", r.led, r.all)
	}
}

// totals are the sums of many reports.
type totals struct {
	mu sync.Mutex
	report
}

func (sum *totals) add(r report) {
	sum.mu.Lock()
	defer sum.mu.Unlock()
	sum.oldToNew += r.oldToNew
	sum.newToOld += r.newToOld
	sum.led += r.led
	sum.all += r.all
	sum.longest = max(sum.longest, r.longest)
}

// spoiler removes a part of the translation between it and the store.
type spoiler struct {
	driver.Store
	spoil func([]byte) []byte
}

func (s spoiler) CompareAndSwap(ctx context.Context, key string, prev driver.Version, value []byte) (driver.Version, error) {
	return s.Store.CompareAndSwap(ctx, key, prev, s.spoil(value))
}

func spoil(f func([]byte) []byte) func(driver.Store) driver.Store {
	return func(s driver.Store) driver.Store { return spoiler{s, f} }
}

var suffix = regexp.MustCompile(`("leaderID":"[^#"]*)#[^"]*"`)

// noSuffix writes the bare ID.
func noSuffix(b []byte) []byte { return suffix.ReplaceAll(b, []byte(`$1"`)) }

// noOffset writes the time of sending. It keeps the millisecond, so that the bytes differ from
// those of other writes.
func noOffset(b []byte) []byte {
	var l lockfile
	if json.Unmarshal(b, &l) != nil || l.LastUpdated.IsZero() {
		return b
	}
	d, _ := parse(b)
	plain, _ := json.Marshal(l.LastUpdated.Add(-testFormat.ahead(&d)))
	there, _ := json.Marshal(l.LastUpdated)
	return bytes.Replace(b, there, plain, 1)
}

// These migrations must fail: each lacks one condition or one part of the translation.
func TestWithoutOneConditionTwoLead(t *testing.T) {
	cases := []struct {
		name string
		cond conditions
		why  string
	}{
		{"no offset", conditions{skew: 5 * time.Second, lease: 15 * time.Second, meddle: spoil(noOffset)},
			"a fast clock takes over from a leader that is cut off, before its lease is over"},
		{"no offset, long lease", conditions{skew: 0, lease: 30 * time.Second, meddle: spoil(noOffset)},
			"S3lect waits 15 s whatever the lease"},
		{"no suffix", conditions{skew: 5 * time.Second, lease: 15 * time.Second, meddle: spoil(noSuffix)},
			"an old process finds its own name in the lockfile"},
		{"clocks apart", conditions{skew: 16 * time.Second, lease: 15 * time.Second},
			"a clock that is fast by more than the offset takes over too soon"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			for seed := range uint64(200) {
				if r := migrate(t, seed, c.cond); len(r.faults) > 0 {
					t.Logf("seed %d: %s", seed, r.faults[0])
					return
				}
			}
			t.Errorf("nothing happened, though %s", c.why)
		})
	}
}
