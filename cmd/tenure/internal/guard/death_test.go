//go:build unix

package guard

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/tenure-go/tenure/cmd/tenure/internal/guard/guardtest"
	"github.com/tenure-go/tenure/cmd/tenure/internal/stamp"
	"golang.org/x/sys/unix"
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

func TestCommandOfADeadCandidateIsKilledInTime(t *testing.T) {
	guardtest.Apart(t, inside(deafParent, 1000*ms, 800*ms), func(p *guardtest.Process) {
		j := ready(p)
		p.Killed()
		answers := j.Last("candidate", "answers")
		last := lastAct(j)
		switch got := last.Sub(answers); {
		case got < 1000*ms:
			t.Errorf("the last act was %v after it was told that 1 s and 800 ms are left", got)
		case got > 1800*ms:
			p.TooLate("the last act was %v after it was told that 1 s and 800 ms are left", got)
		}
	})
}

// The candidate was stopped, and finds that its term is over when there is little time left to the command.
func TestCandidateThatResumesLateGivesNoMoreTime(t *testing.T) {
	guardtest.Alone(t, func(t *testing.T) {
		c := newCandidate(t)
		r := c.run(deaf, 600*ms, 900*ms)
		over := c.journal.Last("candidate", "answers").Add(600 * ms)
		time.Sleep(over.Sub(stamp.Now()) + 500*ms)
		c.left.Store(0)
		c.guard.Renewed()
		c.swept(c.rest(r))
		if late := c.lastAct().Sub(over); late > 900*ms {
			guardtest.TooLate(t, "the last act was %v after the lease was over", late)
		}
	})
}

func TestGuardEndsWithItsCandidate(t *testing.T) {
	guardtest.Apart(t, func(t *testing.T) {
		newCandidate(t).journal.Add("candidate", "ready")
		time.Sleep(guardtest.Patience)
	}, func(p *guardtest.Process) {
		ready(p)
		p.Killed()
	})
}

func TestCloseEndsTheGuard(t *testing.T) {
	guardtest.Alone(t, func(t *testing.T) {
		c := newCandidate(t)
		c.guard.Close()
		c.guardDies()
		if got := c.guard.Err().Error(); !strings.HasSuffix(got, "it has ended") {
			guardtest.TooLate(t, "it did not end by itself: %s", got)
		}
		if got := c.rest(c.guard.Run(shell("exit 1"), c.lease(long), long)); len(got) > 0 {
			t.Errorf("a dead guard tells: %s", show(got))
		}
	})
}

// Even one that hears nothing.
func TestCloseEndsAStoppedGuard(t *testing.T) {
	guardtest.Alone(t, func(t *testing.T) {
		c := newCandidate(t)
		if err := unix.Kill(c.guard.PID(), unix.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		c.guard.Close()
		c.guardDies()
	})
}

func TestGuardsLeaveNoFilesOpen(t *testing.T) {
	guardtest.Alone(t, func(t *testing.T) {
		open := func() int {
			c := newCandidate(t)
			r := c.guard.Run(shell("exit 0"), c.lease(long), long)
			c.started(r)
			c.ends(r, Ending{})
			c.guard.Close()
			all, err := os.ReadDir("/dev/fd")
			if err != nil {
				t.Skip(err)
			}
			return len(all)
		}
		first := open()
		if second, third := open(), open(); second != first || third != first {
			t.Errorf("%d files are open, then %d, then %d", first, second, third)
		}
	})
}

func TestGuardThatCannotBeStarted(t *testing.T) {
	guardtest.Alone(t, func(t *testing.T) {
		c := guardtest.Guard()
		c.Path += ".not"
		if g, err := Start(c); err == nil {
			t.Errorf("got %v", g)
		}
	})
}

// What is no guard is ended, rather than waited for.
func TestGuardThatTalksNonsense(t *testing.T) {
	guardtest.Alone(t, func(t *testing.T) {
		begun := time.Now()
		g, err := Start(exec.Command("/bin/sh", "-c", `echo nonsense >/dev/fd/$2; exec sleep 100`, "sh"))
		if !errors.Is(err, ErrDied) {
			t.Errorf("got %v, %v", g, err)
		}
		if took := time.Since(begun); took > startWithin/2 {
			guardtest.TooLate(t, "it was waited for %v", took)
		}
	})
}

// The kernel's timer is for a command, and does not outlast it.
func TestGuardOutlivesTheLeaseOfACommandThatHasEnded(t *testing.T) {
	guardtest.Alone(t, func(t *testing.T) {
		c := newCandidate(t)
		r := c.run(guardtest.Worker{Deaf: true}, 500*ms, 200*ms)
		c.guard.Kill()
		c.rest(r)
		if c.guard.Gone() {
			guardtest.TooLate(t, "it did not end in time")
		}
		select {
		case <-c.guard.Dead():
			t.Error(c.guard.Err())
		case <-time.After(900 * ms):
		}
	})
}

// Somebody may call it by hand.
func TestGuardWithoutACandidate(t *testing.T) {
	for _, numbers := range [][]string{nil, {"x", "4", "5", "6"}, {"700", "701", "702", "703"}} {
		if err := Main(numbers); err == nil {
			t.Errorf("it runs with the files %v", numbers)
		}
	}
}
