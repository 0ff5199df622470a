package tenure_test

import (
	"bytes"
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/faults"
	"github.com/tenure-go/tenure/driver/memory"
)

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
