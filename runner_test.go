package tenure_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/clock"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/faults"
	"github.com/tenure-go/tenure/driver/memory"
)

// testClock is package time's clock. Its machine can be suspended, and it counts timers.
type testClock struct {
	clock.Standard
	asleep, timers atomic.Int64
}

func (c *testClock) Now() clock.Reading {
	r := c.Standard.Now()
	r.Boot += time.Duration(c.asleep.Load())
	return r
}

func (c *testClock) AfterFunc(d time.Duration, f func()) func() bool {
	c.timers.Add(1)
	return c.Standard.AfterFunc(d, f)
}

// clogged is a store whose reads of all keys but one hang until the test ends them, even if their
// context ends. It counts the writes of that one key.
type clogged struct {
	driver.Store
	hang   chan struct{}
	writes atomic.Int64
}

func (s *clogged) Read(ctx context.Context, k string) (driver.Entry, error) {
	if k != key {
		<-s.hang
	}
	return s.Store.Read(ctx, k)
}

func (s *clogged) CompareAndSwap(ctx context.Context, k string, prev driver.Version, value []byte) (driver.Version, error) {
	if k == key {
		s.writes.Add(1)
	}
	return s.Store.CompareAndSwap(ctx, k, prev, value)
}

// A renewal waits until other calls have ended. Meanwhile the machine is suspended, for longer than
// the lease: another member may lead by now, so the renewal must not be sent. Its context has not
// ended, because timers do not count the time of a suspension.
func TestWriteIsNotSentAfterAStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const limit = 256 // of concurrent calls
		store := &clogged{Store: memory.NewPolled(), hang: make(chan struct{})}
		clocks := &testClock{}
		g := mustNewGroup(t, store, "a", func(c *tenure.Config) { c.Clock = clocks })
		all := g.elections(limit + 1)
		term := campaign(t, all[0])
		ctx, stop := context.WithCancel(t.Context())
		ends := g.joinAll(ctx, all[1:], &termCounter{})
		time.Sleep(lease/3 + time.Second)
		clocks.asleep.Store(int64(time.Hour))
		close(store.hang)
		synctest.Wait()
		if n := store.writes.Load(); n != 1 || term.Err() == nil {
			t.Errorf("after the claim, %d writes were sent; the term ended with %v", n-1, term.Err())
		}
		stop()
		for _, end := range ends {
			<-end
		}
		_ = term.Resign(t.Context())
	})
}

// failing is a store that applies no write while there is an error, and returns the error.
type failing struct {
	driver.Store
	err atomic.Pointer[error]
}

func (s *failing) CompareAndSwap(ctx context.Context, key string, prev driver.Version, value []byte) (driver.Version, error) {
	if err := s.err.Load(); err != nil {
		return "", *err
	}
	return s.Store.CompareAndSwap(ctx, key, prev, value)
}

// Only a write that the store confirms makes or keeps a leader, whatever the error of another.
func TestFailedWritesDoNotCount(t *testing.T) {
	for name, err := range map[string]error{
		"the client's time limit": fmt.Errorf("client: %w", context.DeadlineExceeded),
		"a call that was ended":   context.Canceled,
		"a conflict":              fmt.Errorf("client: %w", driver.ErrConflict),
		"missing rights":          driver.ErrDenied,
		"another error":           errors.New("no answer"),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := &failing{Store: memory.NewPolled()}
				store.err.Store(&err)
				var events diary
				e := mustNew(t, store, "a", func(c *tenure.Config) { c.OnEvent = events.note })
				ctx, stop := context.WithTimeout(t.Context(), 3*lease)
				defer stop()
				if term, err := e.Campaign(ctx); err == nil {
					t.Errorf("term %d begins with a failed claim", term.Token())
				}
				store.err.Store(nil)
				term, _ := e.Campaign(t.Context())
				time.Sleep(lease + time.Second) // no renewal is under way
				store.err.Store(&err)
				left := term.Remaining()
				time.Sleep(left - time.Millisecond)
				if now := term.Remaining(); now != time.Millisecond {
					t.Errorf("%v remain of %v after failed renewals", now, left)
				}
				time.Sleep(time.Millisecond)
				if term.Err() == nil {
					t.Error("the term goes on without renewals")
				}
				store.err.Store(nil)
				_ = term.Resign(t.Context())
				if trouble := events.count(tenure.EventTrouble) > 0; trouble == errors.Is(err, driver.ErrConflict) {
					t.Errorf("reported as trouble: %v", trouble)
				}
			})
		})
	}
}

// Work may ask at each step whether it still leads, so the question must be cheap.
func TestQuestionSetsNoTimer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clocks := &testClock{}
		term := campaign(t, mustNew(t, memory.New(), "a", func(c *tenure.Config) { c.Clock = clocks }))
		time.Sleep(lease)
		synctest.Wait()
		before := clocks.timers.Load()
		for range 1000 {
			time.Sleep(time.Millisecond)
			if err := term.Err(); err != nil {
				t.Fatal(err)
			}
		}
		if n := clocks.timers.Load() - before; n > 0 {
			t.Errorf("1000 questions set %d timers", n)
		}
		_ = term.Resign(t.Context())
	})
}

func TestNoStoreCallOutlivesRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := faults.New(memory.New(), 1, faults.Plan{MinDelay: time.Minute, MaxDelay: time.Minute})
		a, _ := elect(t, f, "a", nil)
		synctest.Wait()
		f.Next(faults.Write, faults.DelayAfter) // the release is pushed before it is answered
		if err := a.end(t); err != nil {
			t.Error(err)
		}
	})
}

func TestIdleObserverReadsAgain(t *testing.T) {
	bubbles(t, func(t *testing.T, store operated) {
		a, _ := elect(t, store, "a", nil)
		o := mustNew(t, store, "o", nil)
		if _, err := o.Wait(t.Context(), func(s tenure.Status) bool { return s.Leader.ID == "a" }); err != nil {
			t.Fatal(err)
		}
		_ = a.end(t)
		elect(t, store, "b", nil)
		time.Sleep(time.Hour)
		s, err := o.Wait(t.Context(), func(s tenure.Status) bool { return s.Leader.Exists() })
		if err != nil || s.Leader.ID != "b" {
			t.Errorf("b leads; Wait says %q, %v", s.Leader.ID, err)
		}
	})
}

// mute never answers a read.
type mute struct{ driver.Store }

func (mute) Read(ctx context.Context, _ string) (driver.Entry, error) {
	<-ctx.Done()
	return driver.Entry{}, ctx.Err()
}

func TestHandOverGivesUpOnASilentStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := mustNew(t, mute{memory.New()}, "a", nil)
		answer := make(chan error, 1)
		go func() { answer <- e.HandOver(context.Background(), "") }()
		if err := within(t, 3*lease, answer, "answer"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
	})
}

// restamping changes the written values, as a store must not do.
type restamping struct {
	*memory.Store
	writes atomic.Int64
}

func (r *restamping) CompareAndSwap(ctx context.Context, key string, prev driver.Version, value []byte) (driver.Version, error) {
	r.writes.Add(1)
	return r.Store.CompareAndSwap(ctx, key, prev, bytes.Replace(value, []byte(`"nonce":"`), []byte(`"nonce":"x`), 1))
}

func TestStoreThatChangesRecordsGetsFewWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &restamping{Store: memory.New()}
		for _, id := range []string{"a", "b"} {
			ctx, cancel := context.WithTimeout(t.Context(), 20*lease)
			if term, _ := mustNew(t, store, id, nil).Campaign(ctx); term != nil {
				time.Sleep(lease)
				_ = term.Resign(ctx)
			}
			cancel()
		}
		if n := store.writes.Load(); n > 200 {
			t.Errorf("%d writes in a few minutes", n)
		}
	})
}

func TestIdleElectionReportsNoFalseVacancy(t *testing.T) {
	bubbles(t, func(t *testing.T, store operated) {
		elect(t, store, "a", nil)
		var d diary
		o := mustNew(t, store, "o", func(c *tenure.Config) { c.OnEvent = d.note })
		for range 3 {
			if _, err := o.Wait(t.Context(), func(s tenure.Status) bool { return s.Known }); err != nil {
				t.Fatal(err)
			}
			time.Sleep(10 * lease)
			if s := o.Status(); s.Leader.ID != "a" {
				t.Errorf("leader %q", s.Leader.ID)
			}
		}
		if e := d.find(tenure.EventLeader); e == nil || e.Leader.ID != "a" || len(d.events) != 1 {
			t.Errorf("events %+v", d.events)
		}
	})
}

func TestReadThatHangsEndsWithItsObserver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := faults.New(memory.NewPolled(), 1, faults.Plan{})
		f.Next(faults.Read, faults.HangBefore)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := mustNew(t, f, "o", nil).Wait(ctx, func(tenure.Status) bool { return false }); err == nil {
			t.Error("no error")
		}
	})
}
