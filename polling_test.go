package tenure_test

import (
	"context"
	"math"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/clock"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/faults"
	"github.com/tenure-go/tenure/driver/memory"
)

// counting counts the reads of one member.
type counting struct {
	*memory.Polled
	mu    sync.Mutex
	reads int
}

func (c *counting) Read(ctx context.Context, key string) (driver.Entry, error) {
	c.mu.Lock()
	c.reads++
	c.mu.Unlock()
	return c.Polled.Read(ctx, key)
}

func (c *counting) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.reads
}

func TestFollowerReadsFourTimesAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &counting{Polled: memory.NewPolled()}
		elect(t, store.Polled, "a", nil)
		start(t, mustNew(t, store, "b", nil), holdOn)
		time.Sleep(time.Minute)
		before := store.count()
		time.Sleep(time.Hour)
		if n := store.count() - before; n > 4*60+1 {
			t.Errorf("%d reads in an hour", n)
		}
	})
}

func TestWorstFailoverIsNotExceeded(t *testing.T) {
	for _, stable := range []time.Duration{0, 5 * time.Second, 9 * time.Second, 14 * time.Second, time.Minute} {
		synctest.Test(t, func(t *testing.T) {
			set := func(c *tenure.Config) { c.Tuning.PollStable = stable }
			store := memory.NewPolled()
			worst := settings("a", set).WorstFailover(store)
			for crash := range 40 {
				took := failover(t, store, set, time.Duration(crash)*371*time.Millisecond)
				if took > worst+time.Second {
					t.Errorf("stable %v: %v from the last renewal to the next leader, more than %v", stable, took, worst)
				}
			}
		})
	}
}

// renewals remembers when the last applied write was sent.
type renewals struct {
	faults.Store
	mu   sync.Mutex
	sent time.Time
}

func (r *renewals) CompareAndSwap(ctx context.Context, key string, prev driver.Version, value []byte) (driver.Version, error) {
	sent := time.Now()
	v, err := r.Store.CompareAndSwap(ctx, key, prev, value)
	if err == nil {
		r.mu.Lock()
		r.sent = sent
		r.mu.Unlock()
	}
	return v, err
}

func (r *renewals) last() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.sent
}

// failover lets a leader die at a time after its election. It returns the time from the last
// renewal to the election of the next leader.
func failover(t *testing.T, store *memory.Polled, set func(*tenure.Config), at time.Duration) time.Duration {
	t.Helper()
	f := &renewals{Store: faults.New(store, 1, faults.Plan{})}
	a, _ := elect(t, f, "a", set)
	b := start(t, mustNew(t, store, "b", set), holdOn)
	time.Sleep(time.Minute + at)
	f.Partition()
	last := f.last()
	within(t, 5*time.Minute, b.won, "term of b")
	took := time.Since(last)
	_ = b.end(t)
	f.Heal()
	_ = a.end(t)
	f.Wait()
	return took
}

// slow is a clock that runs slower than true time. It can be slewed as well.
type slow struct {
	clock.Clock
	raw, slew float64
}

func (s slow) Now() clock.Reading {
	r := s.Clock.Now()
	r.Raw = time.Duration(float64(r.Raw) * s.raw)
	r.Mono = time.Duration(float64(r.Mono) * s.raw * s.slew)
	r.Boot = r.Mono
	return r
}

func (s slow) AfterFunc(d time.Duration, f func()) func() bool {
	return s.Clock.AfterFunc(time.Duration(float64(d)/s.raw/s.slew), f)
}

// After a crash the next leader waits for the lease by its own clock: at most lease / (1 - r), and
// 9 % more while a time daemon slews that clock.
func TestFailoverBoundAfterACrash(t *testing.T) {
	for name, c := range map[string]struct {
		clock slow
		most  time.Duration
	}{
		"true":            {slow{clock.Standard{}, 1, 1}, lease},
		"slow":            {slow{clock.Standard{}, 0.99, 1}, lease * 100 / 99},
		"slow and slewed": {slow{clock.Standard{}, 0.99, 1 / 1.09}, lease * 109 / 99},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := memory.New()
				cut := faulty(t, store)
				elect(t, cut, "a", nil)
				b := start(t, mustNew(t, store, "b", func(cfg *tenure.Config) { cfg.Clock = c.clock }), holdOn)
				time.Sleep(2*lease + time.Millisecond) // right after a renewal
				renewed := time.Now()
				cut.Partition()
				within(t, 2*lease, b.won, "term of b")
				const busy = 100 * time.Millisecond // timers, and the spread of claims
				if took := time.Since(renewed); took < lease-time.Second || took > c.most+busy {
					t.Errorf("b leads %v after a's last renewal, at most %v was promised", took, c.most)
				}
				cut.Heal()
			})
		})
	}
}

// goroutines counts the goroutines of this bubble. The runtime sometimes has others.
func goroutines() int {
	all := make([]byte, 1<<20)
	stacks := string(all[:runtime.Stack(all, true)])
	own := regexp.MustCompile(`synctest bubble \d+]`).FindString(stacks) // the first is the caller
	return strings.Count(stacks, own)
}

func TestObserveFollowsWithoutAGoroutine(t *testing.T) {
	bubbles(t, func(t *testing.T, store operated) {
		var events diary
		o := mustNew(t, store, "observer", func(c *tenure.Config) { c.OnEvent = events.note })
		before := goroutines()
		stop, again := o.Observe(), o.Observe()
		least := math.MaxInt
		for range 60 { // in some of these minutes it reads
			time.Sleep(time.Second)
			synctest.Wait()
			least = min(least, goroutines())
		}
		if least > before {
			t.Errorf("%d goroutines at least, %d before", least, before)
		}
		a, _ := elect(t, store, "a", nil)
		time.Sleep(2 * lease)
		if s := o.Status(); s.Leader.ID != "a" || !s.Confirmed {
			t.Errorf("while it observes: %+v", s)
		}
		if e := events.find(tenure.EventLeader); e == nil || e.Leader.ID != "a" {
			t.Errorf("the event is %+v", e)
		}
		stop()
		stop()
		_ = a.end(t)
		time.Sleep(2 * lease)
		if s := o.Status(); s.Leader.Exists() {
			t.Errorf("one of two observers has stopped: %+v", s)
		}
		again()
		elect(t, store, "b", nil)
		time.Sleep(2 * lease)
		if s := o.Status(); s.Leader.Exists() {
			t.Errorf("no observer is left: %+v", s)
		}
	})
}

// The term and the address stay the same when a leader changes its metadata.
func TestObserverSeesChangedMetadata(t *testing.T) {
	bubbles(t, func(t *testing.T, store operated) {
		zone := func(z string) func(*tenure.Config) {
			return func(c *tenure.Config) { c.Metadata = map[string]string{"zone": z} }
		}
		a, _ := elect(t, store, "a", zone("east"))
		o := mustNew(t, store, "o", nil)
		defer o.Observe()()
		for _, z := range []string{"east", "west", "east"} {
			reconfigure(t, a.election, zone(z))
			time.Sleep(3 * lease)
			if got := o.Status().Leader.Metadata["zone"]; got != z {
				t.Errorf("the leader's zone is %q, want %q", got, z)
			}
		}
	})
}

// The time of the last renewal is for people: a record that nobody holds has none.
func TestRecordShowsWhenItWasRenewed(t *testing.T) {
	bubbles(t, func(t *testing.T, store operated) {
		a, _ := elect(t, store, "a", nil)
		won := time.Now()
		o := mustNew(t, store, "o", nil)
		defer o.Observe()()
		time.Sleep(2 * lease)
		if got := o.Status().Record.Updated; got.Sub(won) < lease/2 || time.Since(got) > lease {
			t.Errorf("elected at %v, renewed at %v, now it is %v", won, got, time.Now())
		}
		_ = a.end(t)
		time.Sleep(2 * lease)
		if r := o.Status().Record; !r.Updated.IsZero() {
			t.Errorf("after the release: %+v", r)
		}
	})
}
