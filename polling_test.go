package tenure_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tenure-go/tenure"
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
