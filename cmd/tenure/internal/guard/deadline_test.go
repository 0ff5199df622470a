//go:build integration && unix

package guard

import (
	"reflect"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tenure-go/tenure/cmd/internal/stamp"
	"github.com/tenure-go/tenure/cmd/internal/test/guardtest"
	"github.com/tenure-go/tenure/internal/test/wait"
)

// These tests run real processes, on a machine that may be slow. They check the order of events,
// and that none comes too early. Virtual time checks when each thing is due.

func TestNothingIsStartedWithoutALease(t *testing.T) {
	guardtest.Alone(t, func(t *testing.T) {
		c := newCandidate(t)
		for _, left := range []time.Duration{0, -time.Second} {
			if got := c.rest(c.guard.Run(c.worker(obedient), c.lease(left), long)); !reflect.DeepEqual(got, []Event{{Empty: true}}) {
				t.Errorf("with %v left: %s", left, show(got))
			}
		}
		c.nothingBegan()
	})
}

// If an answer took longer than the time that it says is left, no time is left.
func TestNothingIsStartedForACandidateThatHangs(t *testing.T) {
	guardtest.Alone(t, func(t *testing.T) {
		c := newCandidate(t)
		slow := func() time.Duration { time.Sleep(400 * ms); return 300 * ms }
		if got := c.rest(c.guard.Run(c.worker(obedient), slow, long)); !reflect.DeepEqual(got, []Event{{Empty: true}}) {
			t.Errorf("got %s", show(got))
		}
		c.nothingBegan()
	})
}

func TestCommandIsKilledIfTheLeaseIsNeverRenewed(t *testing.T) {
	guardtest.Alone(t, func(t *testing.T) {
		c := newCandidate(t)
		r := c.run(deafParent, 500*ms, 800*ms)
		c.isKilled(r, 500*ms, 800*ms)
	})
}

func TestCommandMayEndInGoodOrderWhenTheLeaseIsOver(t *testing.T) {
	guardtest.Alone(t, func(t *testing.T) {
		c := newCandidate(t)
		r := c.run(guardtest.Worker{Finish: 100 * ms, Code: 3}, 500*ms, long)
		c.ends(r, Ending{Code: 3, Forced: true})
		if _, ok := c.journal.Find("command", "end"); !ok {
			t.Error("it did not end in good order")
		}
		if n := c.journal.Count("command", "SIGTERM"); n != 1 {
			t.Errorf("it was asked to end %d times", n)
		}
	})
}

// A stopped process hears nothing, until it is continued.
func TestStoppedCommandIsContinuedToEnd(t *testing.T) {
	guardtest.Alone(t, func(t *testing.T) {
		c := newCandidate(t)
		r := c.guard.Run(shell("kill -STOP $$; exit 9"), c.lease(long), long)
		c.started(r)
		c.shorten(500 * ms)
		c.ends(r, Ending{Signal: 15, Forced: true})
	})
}

func TestCandidateThatHangsDoesNotRenew(t *testing.T) {
	guardtest.Alone(t, func(t *testing.T) {
		c := newCandidate(t)
		hangs, end := make(chan struct{}), make(chan struct{})
		var hang atomic.Bool
		lease := c.lease(long)
		r := c.guard.Run(c.worker(deaf), func() time.Duration {
			if hang.Load() {
				close(hangs)
				<-end
				return long
			}
			return lease()
		}, 800*ms)
		c.started(r)
		_ = c.pid()
		c.shorten(600 * ms)
		hang.Store(true)
		c.guard.Renewed()
		<-hangs
		c.journal.AwaitEnd(t, "")
		hang.Store(false)
		close(end) // which says, too late, that much is left
		c.isKilled(r, 600*ms, 800*ms)
	})
}

// A renewal in time keeps a command running after its first lease. If the renewal came too late
// because the machine was slow, the test begins again with a longer lease.
func TestRenewedLeaseKeepsTheCommandRunning(t *testing.T) {
	guardtest.Alone(t, func(t *testing.T) {
		c := newCandidate(t)
		for first := brief; ; first *= 2 {
			begun := stamp.Now()
			r := c.guard.Run(c.worker(deaf), c.lease(first), 0)
			if e, ok := c.next(r); !ok || e.Started == 0 { // it was over before the command could begin
				c.heldFor(begun, first)
				continue
			}
			c.left.Store(int64(long))
			c.renew()
			c.renew() // the guard has heard of the first
			inTime := stamp.Now().Sub(begun) < first-first/10
			if inTime {
				c.actsAfter(begun.Add(first + first/10))
			}
			c.guard.Kill()
			if e, _ := c.next(r); e.Ended == nil || inTime && *e.Ended != killed {
				t.Errorf("got %+v", e)
			}
			c.rest(r)
			if inTime {
				return
			}
		}
	})
}

// actsAfter waits until the newest command has acted after a time.
func (c *candidate) actsAfter(at stamp.Time) {
	c.Helper()
	wait.Until(c.T, "the command acts", func() bool { return c.journal.Last("command", "act") > at })
	if _, is := c.journal.Find("command", "SIGTERM"); is {
		c.Error("it was asked to end")
	}
}

// heldFor checks that something lasted as long as a lease. Clocks may differ in rate.
func (c *candidate) heldFor(begun stamp.Time, lease time.Duration) {
	c.Helper()
	if took := stamp.Now().Sub(begun); took < lease-lease/10 {
		c.Errorf("it was over %v after it was told that %v are left", took, lease)
	}
}

// The first lease may be the last.
func TestCommandIsEndedThatWasNeverRenewed(t *testing.T) {
	guardtest.Alone(t, func(t *testing.T) {
		c := newCandidate(t)
		c.isEndedAfter(brief)
	})
}

// The second begins with a lease of its own, however much was left to the first.
func TestSecondCommandNeedsALeaseOfItsOwn(t *testing.T) {
	guardtest.Alone(t, func(t *testing.T) {
		c := newCandidate(t)
		r := c.guard.Run(shell("exit 4"), c.lease(long), long)
		c.started(r)
		c.ends(r, Ending{Code: 4})
		c.isEndedAfter(brief)
	})
}

// isEndedAfter runs a command that is never renewed. Where the machine is too slow to begin it
// within a lease, the next has a longer one.
func (c *candidate) isEndedAfter(lease time.Duration) {
	c.Helper()
	for ; ; lease *= 2 {
		begun := stamp.Now()
		r := c.guard.Run(NewCommand("/bin/sleep", []string{"sleep", "1000"}, nil), c.lease(lease), long)
		all := c.rest(r)
		c.heldFor(begun, lease)
		if len(all) == 1 && all[0] == (Event{Empty: true}) {
			continue
		}
		want := []Event{{Started: all[0].Started}, {Ended: &Ending{Signal: 15, Forced: true}}, {Empty: true}}
		if !reflect.DeepEqual(all, want) {
			c.Errorf("got %s", show(all))
		}
		return
	}
}
