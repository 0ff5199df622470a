//go:build integration && unix

package guard

import (
	"os/exec"
	"os/signal"
	"syscall"
	"testing"
	"time"

	"github.com/tenure-go/tenure/cmd/internal/stamp"
	"github.com/tenure-go/tenure/cmd/internal/test/guardtest"
	"github.com/tenure-go/tenure/internal/test/wait"
	"golang.org/x/sys/unix"
)

func TestSignalsReachTheCommandAloneOrAllProcesses(t *testing.T) {
	guardtest.Alone(t, func(t *testing.T) {
		c := newCandidate(t)
		r := c.run(deafParent, long, long)
		c.guard.Signal(unix.SIGUSR1, false)
		c.journal.Await(t, "command", "SIGUSR1")
		c.guard.Signal(unix.SIGUSR2, true)
		for _, name := range []string{"command", "child", "other"} {
			c.journal.Await(t, name, "SIGUSR2")
		}
		for _, name := range []string{"child", "other"} {
			if _, is := c.journal.Find(name, "SIGUSR1"); is {
				t.Errorf("the %s received a signal for the command alone", name)
			}
		}
		c.guard.Kill()
		c.ends(r, killed)
	})
}

func TestKillIsImmediate(t *testing.T) {
	guardtest.Alone(t, func(t *testing.T) {
		c := newCandidate(t)
		r := c.run(deafParent, long, long)
		c.guard.Kill()
		c.ends(r, killed)
		if _, is := c.journal.Find("command", "SIGTERM"); is {
			t.Error("it was asked")
		}
		r = c.guard.Run(shell("exit 2"), c.lease(long), long) // the order was for the first command
		c.started(r)
		c.ends(r, Ending{Code: 2})
	})
}

// A command that a key has stopped could not be continued from the keyboard, least of all if only
// other processes of its group are stopped: then the guard does not notice it either.
func TestKeyboardSuspendsNothing(t *testing.T) {
	guardtest.Alone(t, func(t *testing.T) {
		c := newCandidate(t)
		r := c.run(deafParent, long, long)
		if err := unix.Kill(c.journal.Await(t, "child", "begin").PID, unix.SIGTSTP); err != nil {
			t.Fatal(err)
		}
		c.goOn("child")
		if err := unix.Kill(-c.pid(), unix.SIGTSTP); err != nil {
			t.Fatal(err)
		}
		c.goOn("command", "child", "other")
		c.guard.Kill()
		c.ends(r, killed)
	})
}

// A command may have reset the handling of these signals for itself and all its children.
func TestGroupSuspendedFromTheKeyboardIsContinued(t *testing.T) {
	guardtest.Alone(t, func(t *testing.T) {
		perl, err := exec.LookPath("perl") // a shell cannot do that
		if err != nil {
			t.Fatal(err)
		}
		c := newCandidate(t)
		w := c.worker(deafParent)
		w.Args = append([][]byte{[]byte("perl"), []byte("-e"), []byte(`$SIG{TSTP} = "DEFAULT"; exec @ARGV`), w.Path}, w.Args[1:]...)
		w.Path = []byte(perl)
		r := c.guard.Run(w, c.lease(long), long)
		c.started(r)
		if err := unix.Kill(-c.pid(), unix.SIGTSTP); err != nil {
			t.Fatal(err)
		}
		c.goOn("command", "child", "other")
		c.guard.Kill()
		c.ends(r, killed)
	})
}

// goOn waits until all named processes act after now.
func (c *candidate) goOn(names ...string) {
	c.Helper()
	for _, name := range names {
		since := stamp.Now().Add(200 * time.Millisecond)
		wait.Until(c.T, name+" acts", func() bool { return c.journal.Last(name, "act") > since })
	}
}

// A stopped process would not receive the signal.
func TestStoppedCommandIsContinuedWhenAsked(t *testing.T) {
	guardtest.Alone(t, func(t *testing.T) {
		c := newCandidate(t)
		r := c.run(guardtest.Worker{Code: 3}, long, long)
		if err := unix.Kill(c.pid(), unix.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		c.guard.Signal(unix.SIGTERM, true)
		c.ends(r, Ending{Code: 3})
	})
}

// A signal that ends the candidate, or all processes of a terminal or a service, must not end the
// guard.
func TestGuardIgnoresSignals(t *testing.T) {
	guardtest.Alone(t, func(t *testing.T) {
		c := newCandidate(t)
		r := c.run(obedient, long, long)
		for _, s := range []syscall.Signal{
			unix.SIGHUP, unix.SIGINT, unix.SIGQUIT, unix.SIGTERM, unix.SIGUSR1, unix.SIGUSR2, unix.SIGALRM, unix.SIGWINCH,
		} {
			if err := unix.Kill(c.guard.PID(), s); err != nil {
				t.Fatal(err)
			}
		}
		c.guard.Signal(unix.SIGTERM, false)
		c.ends(r, Ending{})
		if c.guard.Gone() {
			t.Error(c.guard.Err())
		}
	})
}

func TestIgnoredSignalsStayIgnored(t *testing.T) {
	guardtest.Alone(t, func(t *testing.T) {
		signal.Ignore(unix.SIGHUP, unix.SIGINT)
		c := newCandidate(t)
		r := c.guard.Run(shell("kill -HUP $$; kill -INT $$; exit 5"), c.lease(long), long)
		c.started(r)
		c.ends(r, Ending{Code: 5})
	})
}

// The guard is in no foreground group of the terminal, and the command is not in the guard's group.
func TestGuardAndCommandHaveSeparateGroups(t *testing.T) {
	guardtest.Alone(t, func(t *testing.T) {
		c := newCandidate(t)
		r := c.run(obedient, long, long)
		for who, pid := range map[string]int{"guard": c.guard.PID(), "command": c.pid()} {
			if group, err := unix.Getpgid(pid); err != nil || group != pid {
				t.Errorf("the %s %d is in group %d %v", who, pid, group, err)
			}
		}
		c.guard.Kill()
		c.ends(r, killed)
	})
}
