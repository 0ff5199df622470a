package tenure_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/memory"
)

// readable is a store that every client can read. Only clients with the right can write.
type readable struct {
	*memory.Store
	forbidden atomic.Bool
	unfit     bool // this is the reason, not a missing right
	checks    atomic.Int64
	writes    atomic.Int64
	hangs     bool
}

func (r *readable) CheckRights(ctx context.Context, _ string) error {
	r.checks.Add(1)
	if r.hangs {
		<-ctx.Done()
		return ctx.Err()
	}
	return r.may()
}

func (r *readable) may() error {
	switch {
	case !r.forbidden.Load():
		return nil
	case r.unfit:
		return fmt.Errorf("%w: it ignores conditions", driver.ErrUnfit)
	}
	return fmt.Errorf("%w: no right to write", driver.ErrDenied)
}

func (r *readable) CompareAndSwap(ctx context.Context, key string, prev driver.Version, value []byte) (driver.Version, error) {
	r.writes.Add(1)
	if err := r.may(); err != nil {
		return "", err
	}
	return r.Store.CompareAndSwap(ctx, key, prev, value)
}

// led returns a store and its leader.
func led(t *testing.T) (*memory.Store, *running) {
	store := memory.New()
	leader, _ := elect(t, store, "leader", nil)
	return store, leader
}

// Without this check, a standby without the right to write, or over an unfit store, looks healthy
// until it is needed.
func TestStandbyReportsThatItMayNotWrite(t *testing.T) {
	for name, c := range map[string]struct {
		unfit bool
		want  error
	}{"no right": {false, driver.ErrDenied}, "unfit store": {true, tenure.ErrUnfit}} {
		t.Run(name, func(t *testing.T) { synctest.Test(t, func(t *testing.T) { mayNotWrite(t, c.unfit, c.want) }) })
	}
}

func mayNotWrite(t *testing.T, unfit bool, want error) {
	store, leader := led(t)
	mine := &readable{Store: store, unfit: unfit}
	mine.forbidden.Store(true)
	var events diary
	b := start(t, mustNew(t, mine, "b", func(c *tenure.Config) { c.OnEvent = events.note }), holdOn)
	began := time.Now()
	s, err := b.election.Wait(t.Context(), func(s tenure.Status) bool { return s.WriteErr != nil })
	if err != nil || !errors.Is(s.WriteErr, want) || !errors.Is(s.Health(), want) {
		t.Errorf("Wait returned %v, %v; health: %v", s.WriteErr, err, s.Health())
	}
	if took := time.Since(began); took > time.Second {
		t.Errorf("found out after %v", took)
	}
	synctest.Wait()
	if e := events.find(tenure.EventTrouble); e == nil || !errors.Is(e.Cause, want) {
		t.Errorf("the event of it: %+v", e)
	}
	time.Sleep(10 * lease)
	if n := events.count(tenure.EventTrouble); n != 1 {
		t.Errorf("%d events report it", n)
	}
	if err := b.election.HandOver(t.Context(), ""); !errors.Is(err, want) || mine.writes.Load() != 1 {
		t.Errorf("a hand-over is requested by %d writes: %v", mine.writes.Load(), err)
	}
	mine.forbidden.Store(false)
	if _, err := b.election.Wait(t.Context(), func(s tenure.Status) bool { return s.Health() == nil }); err != nil {
		t.Error(err)
	}
	_ = leader.end(t)
	within(t, lease, b.won, "term of b")
}

func TestRightsCheckCostsOneRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, _ := led(t)
		mine := &readable{Store: store}
		g := mustNewGroup(t, mine, "b", nil)
		_, c := start(t, g.election(), holdOn), start(t, g.election("other"), holdOn)
		within(t, 3*lease, c.won, "term of the other election")
		time.Sleep(20 * lease)
		if n := mine.checks.Load(); n > 1 {
			t.Errorf("checked its rights %d times", n)
		}
	})
}

// A candidate that writes at once needs no check. A check that gets no answer ends with the
// election.
func TestRightsCheckCostsALeaderNothingAndEndsWithTheElection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first := &readable{Store: memory.New()}
		elect(t, first, "a", nil)
		time.Sleep(5 * lease)
		if n := first.checks.Load(); n != 0 {
			t.Errorf("a leader checked its rights %d times", n)
		}
		second := &readable{Store: first.Store, hangs: true}
		b := start(t, mustNew(t, second, "b", nil), holdOn)
		time.Sleep(time.Second)
		if second.checks.Load() != 1 {
			t.Error("b did not check its rights")
		}
		_ = b.end(t)
		ended := time.Now()
		synctest.Wait()
		if took := time.Since(ended); took != 0 {
			t.Errorf("ended after %v", took)
		}
	})
}

// A write that was allowed makes checks needless. One that was denied does not.
func TestWritesShowTheRightToWrite(t *testing.T) {
	for name, allowed := range map[string]bool{"allowed": true, "denied": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				mine := &readable{Store: memory.New()}
				mine.forbidden.Store(!allowed)
				g := mustNewGroup(t, mine, "b", nil)
				first := start(t, g.election("other"), holdOn)
				time.Sleep(lease)
				leader, _ := elect(t, mine.Store, "leader", nil)
				b := start(t, g.election(), holdOn)
				time.Sleep(lease)
				if checked := mine.checks.Load() > 0; checked == allowed {
					t.Errorf("checked its rights: %v", checked)
				}
				if err := b.election.Status().WriteErr; (err == nil) != allowed {
					t.Errorf("the right to write: %v", err)
				}
				_, _, _ = first.end(t), b.end(t), leader.end(t)
			})
		})
	}
}
