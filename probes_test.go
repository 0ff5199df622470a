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
	"github.com/tenure-go/tenure/driver/faults"
	"github.com/tenure-go/tenure/driver/memory"
)

// readable is a link that every client can read. Only clients with the right can write.
type readable struct {
	hooked
	driver.Inspector
	forbidden atomic.Pointer[error] // why it must not write; nil: it may
	checks    atomic.Int64
	hangs     bool
}

var (
	errNoRight = fmt.Errorf("%w: no right to write", driver.ErrDenied)
	errUnfit   = fmt.Errorf("%w: it ignores conditions", driver.ErrUnfit)
)

// newReadable returns a link that must not write for a reason, or may if that is nil.
func newReadable(store driver.Store, forbidden error) *readable {
	r := &readable{}
	r.Store = store
	r.allow(forbidden)
	r.before = func(_ context.Context, op faults.Op, _ string, _ []byte) error {
		if op == faults.Write {
			return r.may()
		}
		return nil
	}
	r.watch = driver.AbilitiesOf(store).Watcher.Watch
	r.able = func(a *driver.Abilities) { r.Inspector, a.Inspector = a.Inspector, r }
	return r
}

func (r *readable) allow(forbidden error) {
	if r.forbidden.Store(nil); forbidden != nil {
		r.forbidden.Store(&forbidden)
	}
}

func (r *readable) may() error {
	if err := r.forbidden.Load(); err != nil {
		return *err
	}
	return nil
}

func (r *readable) CheckRights(ctx context.Context, _ string) error {
	r.checks.Add(1)
	if r.hangs {
		<-ctx.Done()
		return ctx.Err()
	}
	return r.may()
}

// Without this check, a standby without the right to write, or over an unfit store, looks healthy
// until it is needed.
func TestStandbyReportsThatItMayNotWrite(t *testing.T) {
	all := scenes{}
	for name, why := range map[string]error{"no right": errNoRight, "unfit store": errUnfit} {
		all[name] = func(s *scene) {
			leader, _ := s.elect("leader")
			mine := newReadable(s.store, why)
			b := s.over(mine).run("b")
			began := time.Now()
			got := b.waits(func(s tenure.Status) bool { return s.WriteErr != nil })
			s.is("WriteErr", got.WriteErr, why)
			s.is("Health", got.Health(), why)
			if took := time.Since(began); took > time.Second {
				s.Errorf("found out after %v", took)
			}
			b.reports(tenure.EventTrouble, why)
			time.Sleep(10 * lease)
			if n := len(b.all(tenure.EventTrouble)); n != 1 {
				s.Errorf("%d events report it", n)
			}
			s.is("HandOver", b.HandOver(s.Context(), ""), why)
			if n := mine.writes.Load(); n != 1 {
				s.Errorf("a hand-over is requested by %d writes", n)
			}
			mine.allow(nil)
			b.waits(func(s tenure.Status) bool { return s.Health() == nil })
			_ = leader.end()
			b.leads(lease)
		}
	}
	all.play(t, watched)
}

func TestRightsChecks(t *testing.T) {
	scenes{
		"they cost one request": func(s *scene) {
			s.elect("leader")
			mine := newReadable(s.store, nil)
			g := s.over(mine).group("b")
			g.new().start(holdOn)
			g.new("other").start(holdOn).leads(3 * lease)
			time.Sleep(20 * lease)
			if n := mine.checks.Load(); n > 1 {
				s.Errorf("checked its rights %d times", n)
			}
		},
		"a store that cannot tell is asked once": func(s *scene) {
			s.elect("leader")
			mine := newReadable(s.store, fmt.Errorf("check rights: %w", errors.ErrUnsupported))
			b := s.over(mine).run("b")
			time.Sleep(20 * lease)
			if n, err := mine.checks.Load(), b.Status().WriteErr; n != 1 || err != nil {
				s.Errorf("checked its rights %d times; missing: %v", n, err)
			}
		},
		// A candidate that writes at once needs no check. A check that gets no answer ends with the
		// election.
		"they cost a leader nothing and end with the election": func(s *scene) {
			first, second := newReadable(s.store, nil), newReadable(s.store, nil)
			s.over(first).elect("a")
			time.Sleep(5 * lease)
			if n := first.checks.Load(); n != 0 {
				s.Errorf("a leader checked its rights %d times", n)
			}
			second.hangs = true
			b := s.over(second).run("b")
			time.Sleep(time.Second)
			if second.checks.Load() != 1 {
				s.Error("b did not check its rights")
			}
			_ = b.end()
			ended := time.Now()
			synctest.Wait()
			if took := time.Since(ended); took != 0 {
				s.Errorf("ended after %v", took)
			}
		},
		// A write that was allowed makes checks needless. One that was denied does not.
		"writes show the right to write": func(s *scene) {
			for _, denied := range []error{nil, errNoRight} {
				mine := newReadable(memory.New(), denied)
				g := s.over(mine).group("b")
				g.new("other").start(holdOn)
				time.Sleep(lease)
				s.over(mine.Store).elect("leader")
				b := g.new().start(holdOn)
				time.Sleep(lease)
				if checked := mine.checks.Load() > 0; checked != (denied != nil) {
					s.Errorf("%v: checked its rights: %v", denied, checked)
				}
				s.is("WriteErr", b.Status().WriteErr, denied)
			}
		},
	}.play(t, watched)
}

// remote is a store with a long round trip.
type remote struct {
	hooked
	delay atomic.Int64 // the round trip
}

func newRemote(delay time.Duration) *remote {
	r := &remote{}
	r.Store = memory.NewPolled()
	r.takes(delay)
	r.before = func(ctx context.Context, _ faults.Op, _ string, _ []byte) error {
		select {
		case <-time.After(time.Duration(r.delay.Load())):
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return r
}

func (r *remote) takes(delay time.Duration) { r.delay.Store(int64(delay)) }

// unwatchable makes a link one whose watches do not begin in time.
func unwatchable(r *remote) *remote {
	r.watch = func(ctx context.Context, _ string, _ func(driver.Entry)) (stop func(), err error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return r
}

// tight is a lease that is too short for a slow link.
func tight(lease time.Duration) set {
	return func(c *tenure.Config) { c.Lease, c.StopWithin, c.Tuning.Drift = lease, 400*time.Millisecond, 0.01 }
}

// shortLease returns the latest ShortLeaseError among the events since a time, or nil.
func (d *diary) shortLease(since time.Time) *tenure.ShortLeaseError {
	d.mu.Lock()
	defer d.mu.Unlock()
	var short *tenure.ShortLeaseError
	for _, e := range d.events {
		if e.Time.After(since) {
			_ = errors.As(e.Cause, &short)
		}
	}
	return short
}

func TestShortLeases(t *testing.T) {
	all := scenes{
		// With a round trip of half a second and a lease of 2 s no candidate is ever elected. The
		// reason is reported, and the remedy works.
		"one that is too short for the link is reported": func(s *scene) {
			s = s.over(newRemote(510 * time.Millisecond))
			a := s.run("a", tight(2*time.Second))
			a.idles(time.Minute)
			_ = a.end()
			short := a.shortLease(time.Time{})
			if short == nil {
				s.Fatal("no line has the reason")
			}
			const want = "no answer within 427ms, which is all that a lease of 2s leaves; answers took 510ms; " +
				"use a lease of at least 5s"
			if short.Error() != want || short.Err == nil {
				s.Errorf("got %v (%v)\nwant %s", short, short.Err, want)
			}
			s.elect("b", tight(short.Least))
		},
		// Other late answers are counted with it. They are no further cause in the log.
		"it explains all late answers": func(s *scene) {
			var log logBuffer
			a := s.over(unwatchable(newRemote(510*time.Millisecond))).run("a", tight(2*time.Second), log.in)
			time.Sleep(5 * time.Minute)
			_ = a.end()
			lines := log.lines("tenure: trouble")
			first := slices.IndexFunc(lines, func(l string) bool { return strings.Contains(l, "which is all that a lease") })
			if first < 0 {
				s.Fatalf("no line has the reason:\n%s", strings.Join(lines, ""))
			}
			for _, l := range lines[first:] {
				if !strings.Contains(l, "which is all that a lease") {
					s.Errorf("another cause: %s", l)
				}
			}
		},
		// The store gets one read more than usual, not one for each election.
		"measuring a slow link costs little": func(s *scene) {
			link := newRemote(time.Hour)
			all := s.over(link).group("a", tight(2*time.Second)).many(10)
			for _, p := range all {
				p.start(holdOn)
			}
			time.Sleep(time.Minute)
			reads := link.reads.Load()
			// One attempt and one pause.
			usual := int64(len(all)) * int64(time.Minute/(1020*time.Millisecond))
			if reads > usual+usual/10+20 {
				s.Errorf("%d reads, usually about %d", reads, usual)
			}
		},
	}
	// An unreachable store is not called slow, not even if it was slow before. A follower only
	// reads.
	for _, follower := range []bool{false, true} {
		for i := range 10 {
			all[fmt.Sprintf("an outage is none: follower=%v, %d", follower, i)] = func(s *scene) {
				link := newRemote(3 * time.Second)
				s = s.over(link)
				a := s.new("a", tight(2*time.Second))
				if follower {
					s.over(link.Store).run("leader", tight(2*time.Second))
					s.Cleanup(a.observe())
				} else {
					a.start(holdOn)
				}
				time.Sleep(time.Minute + time.Duration(i)*400*time.Millisecond)
				link.takes(atOnce)
				time.Sleep(time.Minute)
				if a.shortLease(time.Time{}) == nil {
					s.Error("3 s are not too slow")
				}
				away := time.Now()
				link.takes(time.Hour)
				time.Sleep(10 * time.Minute)
				link.takes(atOnce)
				time.Sleep(time.Minute)
				if short := a.shortLease(away); short != nil {
					s.Errorf("got %v", short)
				}
				if trouble := a.all(tenure.EventTrouble); len(trouble) == 0 || !trouble[len(trouble)-1].Time.After(away) {
					s.Error("no trouble")
				}
				if !follower && len(a.won) < 2 {
					s.Errorf("%d terms", len(a.won))
				}
			}
		}
	}
	all.play(t, polled)
}
