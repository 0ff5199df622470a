package s3lect

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
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

// oldOne is an S3lect process, as its documentation and its known faults describe it. It reads the
// lockfile every 5 s. If the lockfile names it and the time there is less than 15 s old by its own
// clock, it leads and renews. If the lockfile names another process, it follows. Otherwise, or
// without a lockfile, it writes its own name under the ETag that it read. It resigns by writing the
// zero time. A failed read changes nothing. So it may go on leading while it cannot reach the
// store.
type oldOne struct {
	id   string
	line faults.Store
	skew time.Duration

	mu      sync.Mutex
	leading bool
	since   time.Time // when it began to lead, in true time
	frozen  time.Time // it is stopped until then
	refused time.Time // its writes fail until then
	decline bool      // its acquire hook fails next time

	die, resign chan struct{}
	done        chan struct{}
}

const (
	oldEvery   = 5 * time.Second
	oldTimeout = 15 * time.Second
)

var errRefused = errors.New("slow down")

func startOld(id string, line faults.Store, skew, first time.Duration) *oldOne {
	o := &oldOne{
		id: id, line: line, skew: skew,
		die: make(chan struct{}), resign: make(chan struct{}), done: make(chan struct{}),
	}
	go func() {
		defer close(o.done)
		time.Sleep(first)
		o.loop()
	}()
	return o
}

func (o *oldOne) loop() {
	tick := time.NewTicker(oldEvery)
	defer tick.Stop()
	for {
		o.cycle()
		select {
		case <-o.die:
			o.lead(false)
			return
		case <-o.resign:
			if o.leads() {
				o.lead(false)
				o.write(time.Time{}, o.named())
			}
			return
		case <-tick.C:
			o.thaw(tick)
		}
	}
}

// thaw waits until the process is not frozen, and then for its next cycle.
func (o *oldOne) thaw(tick *time.Ticker) {
	for {
		o.mu.Lock()
		d := time.Until(o.frozen)
		o.mu.Unlock()
		if d <= 0 {
			return
		}
		time.Sleep(d)
		tick.Reset(oldEvery)
		<-tick.C
	}
}

func (o *oldOne) cycle() {
	data, etag, err := o.get()
	if errors.Is(err, ErrStorageNotFound) {
		o.claim("")
		return
	}
	var l lockfile
	if err != nil || json.Unmarshal(data, &l) != nil {
		return
	}
	fresh := time.Now().Add(o.skew).Sub(l.LastUpdated) < oldTimeout
	switch {
	case fresh && l.LeaderID == o.id:
		if o.write(time.Now().Add(o.skew), etag) == nil {
			o.lead(true)
		}
	case fresh:
		o.lead(false)
	default:
		o.claim(etag)
	}
}

func (o *oldOne) claim(etag string) {
	o.mu.Lock()
	decline := o.decline
	o.mu.Unlock()
	if o.write(time.Now().Add(o.skew), etag) != nil {
		o.lead(false)
		return
	}
	if decline && !o.leads() {
		o.write(time.Time{}, o.named())
		return
	}
	o.lead(false) // this is a new beginning, even if it still believed that it led
	o.lead(true)
}

// named returns the ETag of the lockfile if it names this process.
func (o *oldOne) named() string {
	data, etag, err := o.get()
	var l lockfile
	if err != nil || json.Unmarshal(data, &l) != nil || l.LeaderID != o.id {
		return "none"
	}
	return etag
}

const oldPatience = 2 * time.Second

func (o *oldOne) get() ([]byte, string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), oldPatience)
	defer cancel()
	return ToStorage(o.line).Get(ctx, "lock.json")
}

func (o *oldOne) write(at time.Time, etag string) error {
	o.mu.Lock()
	refused := time.Now().Before(o.refused)
	o.mu.Unlock()
	if refused {
		return errRefused
	}
	data, err := json.Marshal(lockfile{LeaderID: o.id, LeaderAddr: o.id + ":8443", LastUpdated: at})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), oldPatience)
	defer cancel()
	return ToStorage(o.line).PutIfMatch(ctx, "lock.json", data, etag)
}

func (o *oldOne) lead(yes bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if yes && !o.leading {
		o.since = time.Now()
	}
	o.leading = yes
}

func (o *oldOne) leads() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.leading
}

// Leads reports whether the process leads and is able to act.
func (o *oldOne) Leads() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.leading && !time.Now().Before(o.frozen)
}

// led returns since when it has led, and until when it was frozen.
func (o *oldOne) led() (since, awake time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.since, o.frozen
}

func (o *oldOne) Name() string { return "old " + o.id }

// trouble causes one kind of trouble for a process for a while, and returns a function that ends
// it.
func (o *oldOne) trouble(kind int, d time.Duration) (undo func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch kind % 3 {
	case 0:
		if until := time.Now().Add(d); until.After(o.frozen) {
			o.frozen = until
		}
	case 1:
		o.refused = time.Now().Add(d)
	case 2:
		o.decline = true
	}
	return func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.decline = false
	}
}

func (o *oldOne) End(crash bool) {
	if crash {
		o.lead(false) // an interrupted action is not an act
		close(o.die)
	} else {
		close(o.resign)
	}
	<-o.done
}
