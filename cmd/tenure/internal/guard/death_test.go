//go:build integration && unix

package guard

import (
	"errors"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/tenure-go/tenure/cmd/internal/stamp"
	"github.com/tenure-go/tenure/cmd/internal/test/guardtest"
	"github.com/tenure-go/tenure/cmd/internal/test/must"
)

// inside is a candidate that is killed or stopped from outside.
func inside(w guardtest.Worker, left, stop time.Duration) func(t *testing.T) {
	return func(t *testing.T) {
		c := newCandidate(t)
		r := c.run(w, left, stop)
		c.journal.Add("candidate", "ready")
		c.rest(r)
	}
}

// ready waits until the command of the candidate runs.
func ready(p *guardtest.Process) *guardtest.Journal {
	p.Helper()
	j := guardtest.NewJournal(p.Dir)
	j.Await(p.T, "candidate", "ready")
	return j
}

func TestCommandIsAskedToEndAsSoonAsTheCandidateIsDead(t *testing.T) {
	guardtest.Apart(t, inside(guardtest.Worker{Finish: 100 * ms}, long, long), func(p *guardtest.Process) {
		j := ready(p)
		p.Killed()
		if _, ok := j.Find("command", "end"); !ok {
			t.Error("the command did not end in good order")
		}
	})
}

func TestCommandOfADeadCandidateIsKilled(t *testing.T) {
	guardtest.Apart(t, inside(deafParent, 1000*ms, 800*ms), func(p *guardtest.Process) {
		j := ready(p)
		p.Killed()
		(&candidate{T: t, journal: j}).lasted(1000*ms + 800*ms - Reserve(800*ms))
	})
}

func TestGuardsLeaveNoFilesOpen(t *testing.T) {
	guardtest.Alone(t, func(t *testing.T) {
		open := func() int {
			c := newCandidate(t)
			c.runs(shell("exit 0"), Ending{})
			c.guard.Close()
			all, err := os.ReadDir("/dev/fd")
			must.OK(t, err)
			return len(all)
		}
		first := open()
		if second, third := open(), open(); second != first || third != first {
			t.Errorf("%d files are open, then %d, then %d", first, second, third)
		}
	})
}

// A process that is not a guard is ended at once.
func TestProcessThatIsNoGuardIsEnded(t *testing.T) {
	guardtest.Alone(t, func(t *testing.T) {
		g, err := start(exec.Command("/bin/sh", "-c", `echo nonsense >/dev/fd/$2; exec sleep 1000`, "sh"), time.Hour)
		if !errors.Is(err, ErrDied) {
			t.Errorf("got %v, %v", g, err)
		}
	})
}

// The kernel's timer belongs to a command, and does not outlast it. If the guard is slow, the timer
// may be due before the test ends; then the test gives it more time.
func TestGuardOutlivesTheLeaseOfACommandThatHasEnded(t *testing.T) {
	guardtest.Alone(t, func(t *testing.T) {
		const stop = 200 * ms
		for lease := 500 * ms; ; lease *= 2 {
			c := newCandidate(t)
			r := c.run(guardtest.Worker{Deaf: true}, lease, stop)
			due := stamp.Now().Add(lease + stop)
			c.guard.Kill()
			if c.swept(c.rest(r)) {
				continue
			}
			for stamp.Now() < due {
				time.Sleep(due.Sub(stamp.Now()))
			}
			c.runs(shell("exit 2"), Ending{Code: 2})
			return
		}
	})
}

// These tests run real processes, possibly on a slow machine. They check the order of events and
// that no event comes too early. The tests in virtual time check when each event is due.

func TestCommandIsKilledIfTheLeaseIsNeverRenewed(t *testing.T) {
	withCandidate(t, func(t *testing.T, c *candidate) {
		r := c.run(deafParent, 500*ms, 800*ms)
		c.isKilled(r, 500*ms, 800*ms)
	})
}

// A stopped process receives no signal until it is continued.
func TestStoppedCommandIsContinuedToEnd(t *testing.T) {
	withCandidate(t, func(t *testing.T, c *candidate) {
		r := c.start(shell("kill -STOP $$; exit 9"), long)
		c.shorten(500 * ms)
		c.ends(r, Ending{Signal: 15, Forced: true})
	})
}
