//go:build unix

package guard

import (
	"reflect"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tenure-go/tenure/cmd/tenure/internal/guard/guardtest"
	"github.com/tenure-go/tenure/cmd/tenure/internal/stamp"
)

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

// An answer that took longer than what it says is left, says that nothing is.
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
		c.endsInTime(r, killed, 500*ms, 800*ms)
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
	})
}

// A stopped process hears nothing, until it is continued.
func TestStoppedCommandIsContinuedToEnd(t *testing.T) {
	guardtest.Alone(t, func(t *testing.T) {
		c := newCandidate(t)
		r := c.guard.Run(shell("kill -STOP $$; exit 9"), c.lease(brief), long)
		c.started(r)
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
		pid := c.pid()
		c.left.Store(int64(600 * ms))
		c.renew()
		c.renew()
		hang.Store(true)
		c.guard.Renewed()
		<-hangs
		c.isGone(pid)
		hang.Store(false)
		close(end) // which says, too late, that much is left
		c.endsInTime(r, killed, 600*ms, 800*ms)
	})
}

func TestRenewedLeaseKeepsTheCommandRunning(t *testing.T) {
	guardtest.Alone(t, func(t *testing.T) {
		c := newCandidate(t)
		const lease, stop = 1000 * ms, 400 * ms
		r := c.run(deaf, lease, stop)
		begun, last := time.Now(), time.Now()
		for time.Since(begun) < 2500*ms {
			time.Sleep(100 * ms)
			c.renew()
			if time.Since(last) > lease/2 {
				guardtest.TooLate(t, "it is not renewed in time")
			}
			last = time.Now()
		}
		if _, is := c.journal.Find("command", "SIGTERM"); is {
			guardtest.TooLate(t, "it was asked to end")
		}
		c.endsInTime(r, killed, lease, stop)
	})
}

// The first lease may be the last.
func TestCommandIsEndedThatWasNeverRenewed(t *testing.T) {
	guardtest.Alone(t, func(t *testing.T) {
		c := newCandidate(t)
		begun := stamp.Now()
		r := c.guard.Run(NewCommand("/bin/sleep", []string{"sleep", "100"}, nil), c.lease(brief), long)
		c.started(r)
		c.ends(r, Ending{Signal: 15, Forced: true})
		if took := stamp.Now().Sub(begun); took < brief-brief/10 {
			t.Errorf("it was ended %v after it was told that %v are left", took, brief)
		}
	})
}

// The second begins with a lease of its own, however much was left to the first.
func TestSecondCommandNeedsALeaseOfItsOwn(t *testing.T) {
	guardtest.Alone(t, func(t *testing.T) {
		c := newCandidate(t)
		r := c.guard.Run(shell("exit 4"), c.lease(long), long)
		c.started(r)
		c.ends(r, Ending{Code: 4})
		r = c.guard.Run(NewCommand("/bin/sleep", []string{"sleep", "100"}, nil), c.lease(brief), long)
		c.started(r)
		c.ends(r, Ending{Signal: 15, Forced: true})
	})
}
