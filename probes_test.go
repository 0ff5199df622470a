package tenure_test

import (
	"context"
	"errors"
	"fmt"
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

// remote is a store with a long round trip.
type remote struct {
	*memory.Polled
	delay atomic.Int64 // the round trip
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

func tight(lease time.Duration, onEvent func(tenure.Event)) func(*tenure.Config) {
	return func(c *tenure.Config) {
		c.Lease, c.StopWithin, c.Tuning.Drift, c.OnEvent = lease, 400*time.Millisecond, 0.01, onEvent
	}
}

// shortLease returns the latest ShortLeaseError among the events, or nil.
func (d *diary) shortLease() *tenure.ShortLeaseError {
	d.mu.Lock()
	defer d.mu.Unlock()
	var short *tenure.ShortLeaseError
	for _, e := range d.events {
		_ = errors.As(e.Cause, &short)
	}
	return short
}

// With a round trip of half a second and a lease of 2 s no candidate is ever elected. The reason is
// reported, and the remedy works.
func TestTooShortLeaseForTheLinkIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := far(510 * time.Millisecond)
		var events diary
		a := start(t, mustNew(t, store, "a", tight(2*time.Second, events.note)), holdOn)
		time.Sleep(time.Minute)
		if len(a.won) > 0 {
			t.Fatal("elected")
		}
		_ = a.end(t)
		short := events.shortLease()
		if short == nil {
			t.Fatal("no line has the reason")
		}
		const want = "no answer within 427ms, which is all that a lease of 2s leaves; answers took 510ms; " +
			"use a lease of at least 5s"
		if short.Error() != want || short.Err == nil {
			t.Errorf("got %v (%v)\nwant %s", short, short.Err, want)
		}
		elect(t, store, "b", tight(short.Least, nil))
	})
}

// unwatchable is a store whose watches do not begin in time.
type unwatchable struct{ *remote }

func (unwatchable) Watch(ctx context.Context, _ string, _ func(driver.Entry)) (stop func(), err error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// Other late answers are counted with the lease that is too short. They are no further cause in the
// log.
func TestTooShortLeaseExplainsAllLateAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log logBuffer
		a := start(t, mustNew(t, unwatchable{far(510 * time.Millisecond)}, "a", func(c *tenure.Config) {
			tight(2*time.Second, nil)(c)
			c.Logger = log.logger()
		}), holdOn)
		time.Sleep(5 * time.Minute)
		_ = a.end(t)
		lines := log.lines("tenure: trouble")
		first := slices.IndexFunc(lines, func(l string) bool { return strings.Contains(l, "which is all that a lease") })
		if first < 0 {
			t.Fatalf("no line has the reason:\n%s", strings.Join(lines, ""))
		}
		for _, l := range lines[first:] {
			if !strings.Contains(l, "which is all that a lease") {
				t.Errorf("another cause: %s", l)
			}
		}
	})
}

// An unreachable store is not called slow, not even if it was slow before.
func TestOutageIsNotReportedAsAShortLease(t *testing.T) {
	for i := range 10 {
		synctest.Test(t, func(t *testing.T) { slowAndThenAway(t, time.Minute+time.Duration(i)*400*time.Millisecond) })
	}
}

func slowAndThenAway(t *testing.T, slow time.Duration) {
	store := far(3 * time.Second)
	var early, late diary
	var away atomic.Bool
	a := start(t, mustNew(t, store, "a", tight(2*time.Second, splitAt(&away, &early, &late))), holdOn)
	time.Sleep(slow)
	store.delay.Store(int64(10 * time.Millisecond))
	within(t, time.Minute, a.won, "term of a")
	away.Store(true)
	store.delay.Store(int64(time.Hour))
	time.Sleep(10 * time.Minute)
	store.delay.Store(int64(10 * time.Millisecond))
	within(t, time.Minute, a.won, "another term of a")
	_ = a.end(t)
	t.Logf("early %v late %v %+v", early.shortLease(), late.shortLease(), late.events)
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

// The same for a follower, which only reads.
func TestOutageOfAFollowerIsNotReportedAsAShortLease(t *testing.T) {
	for i := range 10 {
		synctest.Test(t, func(t *testing.T) { slowAndThenAwayFromAFollower(t, time.Minute+time.Duration(i)*400*time.Millisecond) })
	}
}

func slowAndThenAwayFromAFollower(t *testing.T, slow time.Duration) {
	store := far(3 * time.Second)
	leader := start(t, mustNew(t, store.Polled, "leader", tight(2*time.Second, nil)), holdOn)
	var early, late diary
	var away atomic.Bool
	o := mustNew(t, store, "o", tight(2*time.Second, splitAt(&away, &early, &late)))
	defer o.Observe()()
	time.Sleep(slow)
	store.delay.Store(int64(10 * time.Millisecond))
	time.Sleep(time.Minute)
	away.Store(true)
	store.delay.Store(int64(time.Hour))
	time.Sleep(time.Minute)
	if early.shortLease() == nil || late.shortLease() != nil || late.find(tenure.EventTrouble) == nil {
		t.Errorf("when the store was slow: %v; when it was away: %v", early.shortLease(), late.shortLease())
	}
	_ = leader.end(t)
}

// splitAt notes events in early, and in late once it is away.
func splitAt(away *atomic.Bool, early, late *diary) func(tenure.Event) {
	return func(e tenure.Event) {
		if away.Load() {
			late.note(e)
		} else {
			early.note(e)
		}
	}
}

// The store gets one read more than usual, not one for each election.
func TestMeasuringASlowLinkCostsLittle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := far(time.Hour)
		var all []*running
		for _, e := range mustNewGroup(t, store, "a", tight(2*time.Second, nil)).elections(10) {
			all = append(all, start(t, e, holdOn))
		}
		time.Sleep(time.Minute)
		reads := store.reads.Load()
		// One attempt and one pause.
		usual := int64(len(all)) * int64(time.Minute/(1020*time.Millisecond))
		if reads > usual+usual/10+20 {
			t.Errorf("%d reads, usually about %d", reads, usual)
		}
		for _, r := range all {
			_ = r.end(t)
		}
	})
}
