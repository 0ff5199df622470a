package tenure_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/memory"
)

// remote is a store at the end of a long link.
type remote struct {
	*memory.Polled
	delay atomic.Int64 // of a round trip
	reads atomic.Int64
}

func (r *remote) travel(ctx context.Context) error {
	select {
	case <-time.After(time.Duration(r.delay.Load())):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (r *remote) Read(ctx context.Context, key string) (driver.Entry, error) {
	r.reads.Add(1)
	if err := r.travel(ctx); err != nil {
		return driver.Entry{}, err
	}
	return r.Polled.Read(ctx, key)
}

func (r *remote) CompareAndSwap(ctx context.Context, key string, prev driver.Version, value []byte) (driver.Version, error) {
	if err := r.travel(ctx); err != nil {
		return "", err
	}
	return r.Polled.CompareAndSwap(ctx, key, prev, value)
}

func far(delay time.Duration) *remote {
	r := &remote{Polled: memory.NewPolled()}
	r.delay.Store(int64(delay))
	return r
}

func tight(lease time.Duration, told func(tenure.Event)) func(*tenure.Config) {
	return func(c *tenure.Config) {
		c.Lease, c.StopWithin, c.Tuning.Drift, c.OnEvent = lease, 400*time.Millisecond, 0.01, told
	}
}

// shortLease is what the latest trouble says of the lease.
func (d *diary) shortLease() *tenure.ShortLeaseError {
	d.mu.Lock()
	defer d.mu.Unlock()
	var short *tenure.ShortLeaseError
	for _, e := range d.events {
		_ = errors.As(e.Cause, &short)
	}
	return short
}

// With a round trip of half a second and a lease of 2 s nobody is ever elected. The reason is
// named, and the remedy works.
func TestALeaseTooShortForTheLinkIsCalledThat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := far(510 * time.Millisecond)
		var told diary
		a := start(t, mustNew(t, store, "a", tight(2*time.Second, told.note)), holdOn)
		time.Sleep(time.Minute)
		if len(a.won) > 0 {
			t.Fatal("elected")
		}
		_ = a.end(t)
		short := told.shortLease()
		if short == nil {
			t.Fatal("nobody says why")
		}
		const want = "no answer within 427ms, which is all that a lease of 2s leaves; answers took 510ms; " +
			"use a lease of at least 5s"
		if short.Error() != want || short.Err == nil {
			t.Errorf("got %v (%v)\nwant %s", short, short.Err, want)
		}
		b := start(t, mustNew(t, store, "b", tight(short.Least, nil)), holdOn)
		within(t, time.Minute, b.won, "term with the lease that was advised")
		_ = b.end(t)
	})
}

// deaf is a store whose watches do not begin in time.
type deaf struct{ *remote }

func (deaf) Watch(ctx context.Context, _ string, _ func(driver.Entry)) (stop func(), err error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// What else does not come in time is counted with the lease that is too short, and is no further
// cause in the log.
func TestALeaseTooShortExplainsAllLateAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log pages
		a := start(t, mustNew(t, deaf{far(510 * time.Millisecond)}, "a", func(c *tenure.Config) {
			tight(2*time.Second, nil)(c)
			c.Logger = log.logger()
		}), holdOn)
		time.Sleep(5 * time.Minute)
		_ = a.end(t)
		lines := log.lines("tenure: trouble")
		first := slices.IndexFunc(lines, func(l string) bool { return strings.Contains(l, "which is all that a lease") })
		if first < 0 {
			t.Fatalf("nobody says why:\n%s", strings.Join(lines, ""))
		}
		for _, l := range lines[first:] {
			if !strings.Contains(l, "which is all that a lease") {
				t.Errorf("another cause: %s", l)
			}
		}
	})
}

// A store that is away is not called slow, also where it was once.
func TestAnOutageIsNoShortLease(t *testing.T) {
	for i := range 10 {
		synctest.Test(t, func(t *testing.T) { slowAndThenAway(t, time.Minute+time.Duration(i)*400*time.Millisecond) })
	}
}

func slowAndThenAway(t *testing.T, slow time.Duration) {
	store := far(3 * time.Second)
	var early, late diary
	var away atomic.Bool
	a := start(t, mustNew(t, store, "a", tight(2*time.Second, func(e tenure.Event) {
		if away.Load() {
			late.note(e)
		} else {
			early.note(e)
		}
	})), holdOn)
	time.Sleep(slow)
	store.delay.Store(int64(10 * time.Millisecond))
	within(t, time.Minute, a.won, "term of a")
	away.Store(true)
	store.delay.Store(int64(time.Hour))
	time.Sleep(10 * time.Minute)
	store.delay.Store(int64(10 * time.Millisecond))
	within(t, time.Minute, a.won, "another term of a")
	_ = a.end(t)
	if early.shortLease() == nil {
		t.Error("3 s are not too slow")
	}
	if short := late.shortLease(); short != nil {
		t.Errorf("got %v", short)
	}
	if late.find(tenure.EventTrouble) == nil {
		t.Error("no trouble")
	}
}

// The store is asked once more than usual, and not once for each election.
func TestMeasuringASlowLinkCostsLittle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := far(time.Hour)
		var all []*running
		for _, e := range mustNewGroup(t, store, "a", tight(2*time.Second, nil)).elections(10) {
			all = append(all, start(t, e, holdOn))
		}
		time.Sleep(time.Minute)
		reads := store.reads.Load()
		// an attempt and a pause
		usual := int64(len(all)) * int64(time.Minute/(1020*time.Millisecond))
		if reads > usual+usual/10+20 {
			t.Errorf("%d reads, usually about %d", reads, usual)
		}
		for _, r := range all {
			_ = r.end(t)
		}
	})
}
