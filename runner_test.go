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

// A renewal waits until other calls have ended. Meanwhile the machine is suspended, for longer than
// the lease: another member may lead by now, so the renewal must not be sent. Its context has not
// ended, because timers do not count the time of a suspension.
func TestWriteIsNotSentAfterAStop(t *testing.T) {
	play(t, func(s *scene) {
		const limit = 256 // of concurrent calls
		hang := make(chan struct{})
		writes := 0
		clogged := &hooked{Store: s.store, before: func(_ context.Context, op faults.Op, k string, _ []byte) error {
			switch {
			case k == key && op == faults.Write:
				writes++
			case k != key && op == faults.Read:
				<-hang // even if its context ends
			}
			return nil
		}}
		clocks := &testClock{}
		g := s.over(clogged).group("a", withClock(clocks))
		all := g.many(limit + 1)
		term := all[0].campaign()
		end := g.joinAll(all[1:], &termCounter{})
		time.Sleep(lease/3 + time.Second)
		clocks.asleep.Store(int64(time.Hour))
		close(hang)
		synctest.Wait()
		if writes != 1 || term.Err() == nil {
			s.Errorf("after the claim, %d writes were sent; the term ended with %v", writes-1, term.Err())
		}
		end()
		_ = term.Resign(s.Context())
	}, polled)
}

// Only a write that the store confirms makes or keeps a leader, whatever the error of another.
func TestFailedWritesDoNotCount(t *testing.T) {
	all := scenes{}
	for name, err := range map[string]error{
		"the client's time limit": fmt.Errorf("client: %w", context.DeadlineExceeded),
		"a call that was ended":   context.Canceled,
		"a conflict":              fmt.Errorf("client: %w", driver.ErrConflict),
		"missing rights":          driver.ErrDenied,
		"another error":           errors.New("no answer"),
	} {
		all[name] = func(s *scene) {
			var fails atomic.Bool
			fails.Store(true)
			e := s.over(&hooked{Store: s.store, before: func(_ context.Context, op faults.Op, _ string, _ []byte) error {
				if op == faults.Write && fails.Load() {
					return err
				}
				return nil
			}}).new("a")
			ctx, stop := context.WithTimeout(s.Context(), 3*lease)
			defer stop()
			if term, err := e.Campaign(ctx); err == nil {
				s.Errorf("term %d begins with a failed claim", term.Token())
			}
			fails.Store(false)
			term := e.campaign()
			time.Sleep(lease + time.Second) // no renewal is under way
			fails.Store(true)
			left := term.Remaining()
			time.Sleep(left - time.Millisecond)
			if now := term.Remaining(); now != time.Millisecond {
				s.Errorf("%v remain of %v after failed renewals", now, left)
			}
			time.Sleep(time.Millisecond)
			if term.Err() == nil {
				s.Error("the term goes on without renewals")
			}
			fails.Store(false)
			_ = term.Resign(s.Context())
			if trouble := e.find(tenure.EventTrouble) != nil; trouble == errors.Is(err, driver.ErrConflict) {
				s.Errorf("reported as trouble: %v", trouble)
			}
		}
	}
	all.play(t, polled)
}

func TestCosts(t *testing.T) {
	scenes{
		// Work may ask at each step whether it still leads, so the question must be cheap.
		"a question sets no timer": func(s *scene) {
			clocks := &testClock{}
			term := s.new("a", withClock(clocks)).campaign()
			time.Sleep(lease)
			synctest.Wait()
			before := clocks.timers.Load()
			for range 1000 {
				time.Sleep(time.Millisecond)
				s.is("Err", term.Err(), nil)
			}
			if n := clocks.timers.Load() - before; n > 0 {
				s.Errorf("1000 questions set %d timers", n)
			}
			s.resign(term)
		},
		"no store call outlives Run": func(s *scene) {
			f, far := s.faulty(faults.Plan{MinDelay: time.Minute, MaxDelay: time.Minute})
			a, _ := far.elect("a")
			synctest.Wait()
			f.Next(faults.Write, faults.DelayAfter) // the release is pushed before it is answered
			s.is("Run", a.end(), nil)
		},
		"a store that changes records gets few writes": func(s *scene) {
			restamping := &restamping{hooked{Store: s.store}}
			for _, id := range []string{"a", "b"} {
				ctx, cancel := context.WithTimeout(s.Context(), 20*lease)
				if term, _ := s.over(restamping).new(id).Campaign(ctx); term != nil {
					time.Sleep(lease)
					_ = term.Resign(ctx)
				}
				cancel()
			}
			if n := restamping.writes.Load(); n > 200 {
				s.Errorf("%d writes in a few minutes", n)
			}
		},
		"a follower reads four times a minute": func(s *scene) {
			if _, pushes := s.store.(driver.Watcher); pushes {
				return
			}
			s.elect("a")
			link := &hooked{Store: s.store}
			s.over(link).run("b")
			time.Sleep(time.Minute)
			before := link.reads.Load()
			time.Sleep(time.Hour)
			if n := link.reads.Load() - before; n > 4*60+1 {
				s.Errorf("%d reads in an hour", n)
			}
		},
	}.play(t, watched, polled)
}

// restamping changes the written values, as a store must not do.
type restamping struct{ hooked }

func (r *restamping) CompareAndSwap(ctx context.Context, key string, prev driver.Version, value []byte) (driver.Version, error) {
	return r.hooked.CompareAndSwap(ctx, key, prev, bytes.Replace(value, []byte(`"nonce":"`), []byte(`"nonce":"x`), 1))
}
