package s3lect

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"regexp"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/faults"
	"github.com/tenure-go/tenure/driver/memory"
)

// process is a process of either kind.
type process interface {
	name() string
	// acts reports whether the process does a leader's work now, since when it has led, and until
	// when it was frozen.
	acts() (since, awake time.Time, ok bool)
	trouble(kind int, d time.Duration) (undo func())
	end(crash bool)
}

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
	rng    *rand.Rand
	cond   conditions
	store  *memory.Polled
	mu     sync.Mutex
	places [6]process // first the old processes, then the new ones
	report report
	last   process
	stop   chan struct{}
	done   chan struct{}
}

// report is the referee's result.
type report struct {
	faults []string
	// The longest time for which an S3lect process went on after another process took over from it.
	longest     time.Duration
	led         time.Duration
	all         time.Duration
	oldToNew    int
	newToOld    int
	token       uint64
	tokenFaults int
}

const look = 50 * time.Millisecond

// slack is for requests in flight: a read and a write of an old process, at most 300 ms each way,
// and the referee's check.
const slack = 1300 * time.Millisecond

func newFleet(seed uint64, cond conditions) *fleet {
	f := &fleet{
		rng: rand.New(rand.NewPCG(seed, 1)), cond: cond, store: memory.NewPolled(),
		stop: make(chan struct{}), done: make(chan struct{}),
	}
	go func() {
		defer close(f.done)
		for {
			select {
			case <-f.stop:
				return
			case <-time.After(look):
				f.look()
			}
		}
	}()
	return f
}

func (f *fleet) between(least, most time.Duration) time.Duration {
	return least + time.Duration(f.rng.Int64N(int64(most-least)+1))
}

// clock returns a skew of up to half of the total, so that two clocks differ by at most all of it.
func (f *fleet) clock() time.Duration {
	if f.rng.IntN(2) == 0 {
		return f.cond.skew/2 - f.between(0, f.cond.skew/20)
	}
	return -f.cond.skew/2 + f.between(0, f.cond.skew/20)
}

func (f *fleet) line(chances faults.Chances) faults.Store {
	var store driver.Store = f.store
	if f.cond.bare {
		store = FromStorage(struct{ Storage }{ToStorage(store)})
	}
	return faults.New(store, f.rng.Uint64(), faults.Plan{Chances: chances, MaxDelay: 300 * time.Millisecond})
}

func (f *fleet) put(i int, p process) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.places[i] = p
}

func (f *fleet) at(i int) process {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.places[i]
}

func (f *fleet) startOld(i int) {
	line := f.line(faults.Chances{faults.DelayBefore: 0.3, faults.DelayAfter: 0.3})
	f.put(i, startOld(fmt.Sprintf("server-%d", i), line, f.clock(), f.between(0, oldEvery)))
}

func (f *fleet) startNew(i int) {
	line := f.line(faults.Chances{faults.DelayBefore: 0.2, faults.DelayAfter: 0.2, faults.LoseAnswer: 0.03, faults.LoseRequest: 0.03})
	n, err := startNew(fmt.Sprintf("server-%d", i), line, f.clock(), f.cond)
	if err != nil {
		panic(err)
	}
	f.put(3+i, n)
}

func (f *fleet) end(i int, crash bool) {
	f.at(i).end(crash)
	f.put(i, nil)
}

// migrate replaces the old processes one by one, while other things happen.
func (f *fleet) migrate() report {
	for i := range 3 {
		f.startOld(i)
	}
	for i := range 3 {
		f.happen(3)
		f.startNew(i)
		f.happen(1)
		time.Sleep(f.between(0, 40*time.Second))
		f.end(i, f.rng.IntN(3) == 0)
		time.Sleep(f.between(0, 40*time.Second))
		if i < 2 && f.rng.IntN(3) == 0 { // roll back, once
			f.startOld(i)
			f.happen(2)
			f.end(i, false)
		}
	}
	f.happen(2)
	for i := range 6 {
		if f.at(i) != nil {
			f.end(i, false)
		}
	}
	close(f.stop)
	<-f.done
	return f.report
}

// happen lets n things happen to processes, mostly to the leader.
func (f *fleet) happen(n int) {
	for range n {
		time.Sleep(f.between(0, 50*time.Second))
		i := f.pick()
		if i < 0 {
			continue
		}
		switch kind := f.rng.IntN(7); {
		case kind < 3:
			undo := f.at(i).trouble(kind, f.between(time.Second, 40*time.Second))
			time.Sleep(f.between(time.Second, 45*time.Second))
			undo()
		default:
			f.end(i, kind%2 == 0)
			time.Sleep(f.between(0, 30*time.Second))
			if i < 3 {
				f.startOld(i)
			} else {
				f.startNew(i - 3)
			}
		}
	}
}

func (f *fleet) pick() int {
	alive := []int{}
	for i := range 6 {
		p := f.at(i)
		if p == nil {
			continue
		}
		if _, _, ok := p.acts(); ok && f.rng.IntN(4) > 0 {
			return i
		}
		alive = append(alive, i)
	}
	if len(alive) == 0 {
		return -1
	}
	return alive[f.rng.IntN(len(alive))]
}

// look is the referee: no two processes may act at once. An S3lect process may act until its next
// read of the lockfile after another process took over from it.
func (f *fleet) look() {
	f.mu.Lock()
	defer f.mu.Unlock()
	var acting []process
	for _, p := range f.places {
		if p == nil {
			continue
		}
		if _, _, ok := p.acts(); ok {
			acting = append(acting, p)
		}
	}
	f.report.all += look
	if len(acting) > 0 {
		f.report.led += look
	}
	for i, p := range acting {
		for _, q := range acting[:i] {
			f.judge(p, q)
		}
	}
	if len(acting) == 1 {
		f.turn(acting[0])
	}
}

func (f *fleet) judge(p, q process) {
	first, second := p, q
	pSince, _, _ := p.acts()
	qSince, _, _ := q.acts()
	if qSince.Before(pSince) {
		first, second = q, p
	}
	old, ok := first.(*oldOne)
	if !ok {
		f.fault("%s took over from %s, which leads", second.name(), first.name())
		return
	}
	begun, _, _ := second.acts()
	if _, awake, _ := old.acts(); awake.After(begun) {
		begun = awake
	}
	both := time.Since(begun)
	f.report.longest = max(f.report.longest, both)
	if both > oldEvery+slack {
		f.fault("%s goes on for %v after %s took over", first.name(), both, second.name())
	}
}

func (f *fleet) fault(format string, args ...any) {
	if len(f.report.faults) < 5 {
		f.report.faults = append(f.report.faults, time.Now().Format("15:04:05.00 ")+fmt.Sprintf(format, args...))
	}
}

// turn records each leader and the one before it.
func (f *fleet) turn(p process) {
	if p == f.last {
		return
	}
	if f.last != nil {
		_, wasOld := f.last.(*oldOne)
		_, isOld := p.(*oldOne)
		switch {
		case wasOld && !isOld:
			f.report.oldToNew++
		case isOld && !wasOld:
			f.report.newToOld++
		}
	}
	f.last = p
	if n, ok := p.(*newOne); ok {
		if n.token() <= f.report.token {
			f.report.tokenFaults++
		}
		f.report.token = n.token()
	}
}

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
