package s3lect

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log/slog"
	"regexp"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/clock"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/faults"
	"github.com/tenure-go/tenure/driver/memory"
	"github.com/tenure-go/tenure/internal/test/migration"
)

// conditions are the circumstances of a migration.
type conditions struct {
	skew   time.Duration // clocks differ by at most this
	lease  time.Duration
	meddle func(driver.Store) driver.Store // spoils the writes of candidates
	// electors makes the new processes electors of this package. Their lease must be the timeout of
	// the old processes.
	electors bool
	bare     bool // candidates also use S3lect's two methods, without a floor
}

// fleet is three servers over one lockfile, and a referee that checks them all the time.
type fleet struct {
	*migration.Fleet
	cond  conditions
	store *memory.Polled
	// The longest time for which an S3lect process went on after another process took over from it.
	longest time.Duration
}

const look = 50 * time.Millisecond

// slack is for requests in flight: a read and a write of an old process, at most 300 ms each way,
// and the referee's check.
const slack = 1300 * time.Millisecond

// clock returns a skew of up to half of the total, so that two clocks differ by at most all of it.
func (f *fleet) clock() time.Duration {
	skew := f.cond.skew/2 - f.Between(0, f.cond.skew/20)
	if f.Draw(2) == 0 {
		return skew
	}
	return -skew
}

func (f *fleet) line(chances faults.Chances) faults.Store {
	var store driver.Store = f.store
	if f.cond.bare {
		store = FromStorage(struct{ Storage }{ToStorage(store)})
	}
	return faults.New(store, uint64(f.Between(0, time.Hour)), faults.Plan{Chances: chances, MaxDelay: 300 * time.Millisecond})
}

func (f *fleet) startOld(i int) {
	line := f.line(faults.Chances{faults.DelayBefore: 0.3, faults.DelayAfter: 0.3})
	f.Put(i, startOld(fmt.Sprintf("server-%d", i), line, f.clock(), f.Between(0, oldEvery)))
}

// startNew starts a candidate whose records pass through meddle on their way to the store, unless
// meddle is nil. It is an elector of this package if the conditions need nothing that an elector
// lacks.
func (f *fleet) startNew(i int) {
	line := f.line(faults.Chances{faults.DelayBefore: 0.2, faults.DelayAfter: 0.2, faults.LoseAnswer: 0.03, faults.LoseRequest: 0.03})
	n, skew := &migration.Candidate{ID: fmt.Sprintf("server-%d", i), Line: line}, f.clock()
	var err error
	if f.cond.electors {
		err = elector(n, skew, f.cond.lease)
	} else {
		err = f.candidate(n, skew)
	}
	if err != nil {
		panic(err)
	}
	f.Put(3+i, n)
}

func (f *fleet) candidate(n *migration.Candidate, skew time.Duration) error {
	var inner driver.Store = n.Line
	if f.cond.meddle != nil {
		inner = f.cond.meddle(inner)
	}
	store := legacyAt(inner, LegacyConfig{}.withDefaults(), func() time.Time { return time.Now().Add(skew) })
	e, err := tenure.New(store, "lock.json", tenure.Config{
		ID: n.ID, Address: n.ID + ":9443", Lease: f.cond.lease, Clock: clockAhead{clock.Standard{}, skew},
	})
	if err == nil {
		n.Campaign(e)
	}
	return err
}

// elector uses S3lect's API. Its LeaderTimeout is its lease, and counts as the timeout of the old
// processes.
func elector(n *migration.Candidate, skew, lease time.Duration) error {
	e, err := NewS3Elector(S3ElectorOptions{
		Config: &ElectorConfig{
			LockfilePath: "lock.json", ServerID: n.ID, ServerAddr: n.ID + ":9443",
			LeaderTimeout: lease, FrequentInterval: lease / 3, OnAcquireLeadership: n.Lead,
		},
		Store: n.Line, Logger: slog.New(slog.DiscardHandler), MaxSkew: LegacyConfig{}.withDefaults().MaxSkew,
		Configure: func(c *tenure.Config) { c.Clock = clockAhead{clock.Standard{}, skew} },
	})
	if err == nil {
		n.Run(e.election.HandOver, func(ctx context.Context) {
			_ = e.Start(ctx)
			<-e.done
		})
	}
	return err
}

// clockAhead shows its own time of day. Its time passes at the normal rate.
type clockAhead struct {
	clock.Clock
	by time.Duration
}

func (c clockAhead) Now() clock.Reading {
	r := c.Clock.Now()
	r.Wall = r.Wall.Add(c.by)
	return r
}

// happen lets one thing happen to a process.
func (f *fleet) happen(i int) {
	kind := f.Draw(7)
	if kind >= 3 {
		f.End(i, kind%2 == 0)
		time.Sleep(f.Between(0, 30*time.Second))
		if i < 3 {
			f.startOld(i)
		} else {
			f.startNew(i - 3)
		}
		return
	}
	var undo func()
	d := f.Between(time.Second, 40*time.Second)
	switch p := f.At(i).(type) {
	case *oldOne:
		undo = p.trouble(kind, d)
	case *migration.Candidate:
		undo = p.Trouble(kind == 2, d)
	}
	time.Sleep(f.Between(time.Second, 45*time.Second))
	undo()
}

// judge: no two processes may act at once. But an S3lect process may act until its next read of the
// lockfile after another process took over from it.
func (f *fleet) judge(p, q migration.Process) string {
	first, second := p, q
	if began(q).Before(began(p)) {
		first, second = q, p
	}
	old, ok := first.(*oldOne)
	if !ok {
		return fmt.Sprintf("%s took over from %s, which leads", second.Name(), first.Name())
	}
	begun := began(second)
	if _, awake := old.led(); awake.After(begun) {
		begun = awake
	}
	both := time.Since(begun)
	f.longest = max(f.longest, both)
	if both > oldEvery+slack {
		return fmt.Sprintf("%s goes on for %v after %s took over", first.Name(), both, second.Name())
	}
	return ""
}

func began(p migration.Process) time.Time {
	if n, ok := p.(*migration.Candidate); ok {
		return n.Won()
	}
	since, _ := p.(*oldOne).led()
	return since
}

// migrations is a small number by default. The long checks set a larger one.
var migrations = flag.Int("migrations", 12, "how `many` fleets TestRollingMigration replaces")

// migrate runs a whole migration in virtual time.
func migrate(t *testing.T, seed uint64, cond conditions) (r migration.Report, longest time.Duration) {
	t.Helper()
	synctest.Test(t, func(*testing.T) {
		f := &fleet{cond: cond, store: memory.NewPolled()}
		f.Fleet = migration.New(seed, look, f.judge)
		f.Migrate(40*time.Second, 2*time.Minute, f.startOld, f.startNew, f.happen)
		r = f.Close()
		longest = f.longest
	})
	return r, longest
}

// The leases are shorter than S3lect's timeout, equal to it, and longer.
var leases = []time.Duration{6 * time.Second, 15 * time.Second, 30 * time.Second}

func TestRollingMigration(t *testing.T) {
	var mu sync.Mutex
	var sum migration.Report
	var longest time.Duration
	t.Run("fleets", func(t *testing.T) { // it ends when all tests in it have ended
		for seed := range uint64(*migrations) {
			cond := conditions{
				skew: 5 * time.Second, lease: leases[seed%3], bare: seed%4 == 3, electors: seed%3 == 1 && seed%2 == 0,
			}
			t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
				t.Parallel()
				r, both := migrate(t, seed, cond)
				if cond.bare {
					r.TokensNotAbove = 0
				}
				r.Require(t)
				mu.Lock()
				defer mu.Unlock()
				sum.Add(r)
				longest = max(longest, both)
			})
		}
	})
	t.Logf("%v; an old one went on for at most %v", sum, longest)
	// On average each seed has two and one of these.
	if sum.OldToNew < *migrations || sum.NewToOld < *migrations/4 || longest == 0 {
		t.Errorf("%v: nothing is proved by that", sum)
	}
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
				if r, _ := migrate(t, seed, c.cond); len(r.Faults) > 0 {
					t.Logf("seed %d: %s", seed, r.Faults[0])
					return
				}
			}
			t.Errorf("nothing happened, though %s", c.why)
		})
	}
}
