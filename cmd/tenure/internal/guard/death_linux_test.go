package guard

import (
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tenure-go/tenure/cmd/tenure/internal/guard/guardtest"
	"github.com/tenure-go/tenure/cmd/tenure/internal/stamp"
	"golang.org/x/sys/unix"
)

// atOnce is how long the kernel may take to carry out what it was told.
const atOnce = 2 * time.Second

func TestCommandDiesWithItsGuard(t *testing.T) {
	guardtest.Alone(t, func(t *testing.T) {
		c := newCandidate(t)
		r := c.run(deafParent, long, long)
		died := stamp.Now()
		c.guard.Abandon()
		c.guardDies()
		if got := c.rest(r); len(got) > 0 {
			t.Errorf("a dead guard tells: %s", show(got))
		}
		late := c.quiet().Sub(died)
		Sweep(c.pid(), nil)
		if late > atOnce {
			guardtest.TooLate(t, "something acts %v after the guard has died", late)
		}
	})
}

// The tripwire is for the group, and the parent-death signal for the command if it is not in it.
func TestCommandThatHasLeftItsGroupDiesWithItsGuard(t *testing.T) {
	guardtest.Alone(t, func(t *testing.T) {
		c := newCandidate(t)
		c.run(guardtest.Worker{Deaf: true, Strays: true}, long, long)
		died := stamp.Now()
		c.guard.Abandon()
		c.guardDies()
		if late := c.quiet().Sub(died); late > atOnce {
			guardtest.TooLate(t, "it acts %v after the guard has died", late)
		}
	})
}

// What is left of the tripwire when both are dead is with those whom it is to kill, or else the guard was the last to have it.
func TestCommandDiesWithItsCandidateAndItsGuard(t *testing.T) {
	t.Parallel()
	for why, w := range map[string]guardtest.Worker{
		"as it is":                        deafParent,
		"having closed what it was given": {Deaf: true, Closes: true, Children: []guardtest.Worker{{Name: "child", Deaf: true}}},
	} {
		t.Run(why, func(t *testing.T) {
			guardtest.Apart(t, func(t *testing.T) {
				c := newCandidate(t)
				c.journal.Add("guard", strconv.Itoa(c.guard.PID()))
				r := c.run(w, long, long)
				c.journal.Add("candidate", "ready")
				c.rest(r)
			}, func(p *guardtest.Process) {
				c := &candidate{T: t, journal: ready(p)}
				p.Signal(unix.SIGKILL)
				c.journal.Await(t, "command", "SIGTERM") // by now the guard knows
				died := stamp.Now()
				if err := unix.Kill(guardOf(c.journal), unix.SIGKILL); err != nil {
					t.Error(err)
				}
				if late := c.quiet().Sub(died); late > atOnce {
					p.TooLate("something acts %v after that", late)
				}
			})
		})
	}
}

func guardOf(j *guardtest.Journal) (pid int) {
	for _, n := range j.Notes() {
		if n.Name == "guard" {
			pid, _ = strconv.Atoi(n.What)
		}
	}
	return pid
}

// quiet waits until nobody has acted for some time, and returns when the last did.
func (c *candidate) quiet() (last stamp.Time) {
	c.Helper()
	guardtest.Eventually(c.T, func() bool {
		last = lastAct(c.journal)
		return stamp.Now().Sub(last) > 500*time.Millisecond
	}, func() string { return "something goes on acting" })
	return last
}

// The kernel kills the process that it was told to, and its group. Who has left that is found by its descent.
func TestSweepFindsWhoHasLeftTheGroup(t *testing.T) {
	t.Parallel()
	for why, known := range map[string]bool{"and the process": true, "before the process is known": false} {
		t.Run(why, func(t *testing.T) {
			guardtest.Alone(t, func(t *testing.T) {
				Adopt()
				c := newCandidate(t)
				c.run(guardtest.Worker{Deaf: true, Children: []guardtest.Worker{
					{Name: "child", Deaf: true}, {Name: "other", Deaf: true, Apart: true},
				}}, long, long)
				c.guard.Abandon()
				c.guardDies()
				c.goOn("other") // or there is nothing to find
				pid := c.pid()
				if !known {
					pid = 0
				}
				if !Sweep(pid, nil) {
					t.Error("it was given up")
				}
				now := stamp.Now()
				if late := c.lastAct(); late > now {
					t.Errorf("something acts %v after that", late.Sub(now))
				}
			})
		})
	}
}

// Whoever starts tenure by "helper & exec tenure run ..." leaves it a child that is nobody's orphan.
func TestSweepSparesWhoWasThereBefore(t *testing.T) {
	guardtest.Alone(t, func(t *testing.T) {
		helper := exec.Command("/bin/sleep", "100")
		if err := helper.Start(); err != nil {
			t.Fatal(err)
		}
		Adopt()
		c := newCandidate(t)
		c.run(guardtest.Worker{Deaf: true, Children: []guardtest.Worker{{Name: "other", Deaf: true, Apart: true}}}, long, long)
		c.guard.Abandon()
		c.guardDies()
		if !Sweep(c.pid(), nil) {
			t.Error("it was given up")
		}
		var status unix.WaitStatus
		if pid, err := unix.Wait4(helper.Process.Pid, &status, unix.WNOHANG, nil); pid != 0 || err != nil {
			t.Errorf("the helper has ended: %v %v", status, err)
		}
		_ = helper.Process.Kill()
		_ = helper.Wait()
	})
}

// What runs as somebody else is waited for, until that is given up.
func TestSweepMayBeGivenUp(t *testing.T) {
	guardtest.Alone(t, func(t *testing.T) {
		if os.Getuid() != 0 {
			t.Skip("only root can be two users")
		}
		c := exec.Command("/bin/sleep", "100")
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		const nobody = 65534
		if err := syscall.Setresuid(nobody, nobody, 0); err != nil {
			t.Fatal(err)
		}
		giveUp := make(chan struct{})
		close(giveUp)
		if Sweep(0, giveUp) {
			t.Error("it was not given up")
		}
		if err := syscall.Setresuid(0, 0, 0); err != nil {
			t.Fatal(err)
		}
		if !Sweep(0, giveUp) {
			t.Error("it was given up")
		}
	})
}

// The kernel's timer is for a guard that cannot do anything.
func TestStoppedGuardIsKilledInTime(t *testing.T) {
	guardtest.Alone(t, func(t *testing.T) {
		c := newCandidate(t)
		c.run(deafParent, 600*ms, 800*ms)
		if err := unix.Kill(c.guard.PID(), unix.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		c.guardDies()
		late := c.stoppedInTime(600*ms, 800*ms)
		Sweep(c.pid(), nil)
		if late > 0 {
			guardtest.TooLate(t, "the last act was %v too late", late)
		}
	})
}

// stoppedInTime checks when the last of them acted who were not asked to end. It returns by how much that was too late.
func (c *candidate) stoppedInTime(lease, stop time.Duration) (late time.Duration) {
	c.Helper()
	last := c.quiet()
	if got := last.Sub(c.journal.Last("candidate", "asks")); got < lease {
		c.Errorf("the last act was %v after it was told that %v and %v are left", got, lease, stop)
	}
	return last.Sub(c.journal.Last("candidate", "answers")) - lease - stop
}

func TestStoppedGuardOfAStoppedCandidateIsKilledInTime(t *testing.T) {
	guardtest.Apart(t, func(t *testing.T) {
		c := newCandidate(t)
		r := c.run(deafParent, 800*ms, 800*ms)
		if err := unix.Kill(c.guard.PID(), unix.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		c.journal.Add("candidate", "ready")
		if err := unix.Kill(os.Getpid(), unix.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		c.rest(r)
		c.guardDies()
		Sweep(c.pid(), nil)
	}, func(p *guardtest.Process) {
		j := ready(p)
		c := &candidate{T: t, journal: j}
		late := c.stoppedInTime(800*ms, 800*ms)
		p.Signal(unix.SIGCONT)
		p.Passes()
		if late > 0 {
			p.TooLate("the last act was %v too late", late)
		}
	})
}

// A guard that was stopped for a while goes on with what is due.
func TestGuardThatResumesGoesOn(t *testing.T) {
	guardtest.Alone(t, func(t *testing.T) {
		c := newCandidate(t)
		r := c.run(obedient, long, long)
		for _, s := range []unix.Signal{unix.SIGSTOP, unix.SIGCONT} {
			if err := unix.Kill(c.guard.PID(), s); err != nil {
				t.Fatal(err)
			}
		}
		c.guard.Signal(unix.SIGTERM, true)
		c.ends(r, Ending{})
	})
}

func TestLeftoversOutsideTheGroupAreEnded(t *testing.T) {
	t.Parallel()
	for why, left := range map[string]guardtest.Worker{
		"asked":   {Apart: true, Finish: 300 * ms},
		"ignores": {Apart: true, Deaf: true},
	} {
		t.Run(why, func(t *testing.T) {
			guardtest.Alone(t, func(t *testing.T) {
				left.Name = "left"
				tidied(t, left)
			})
		})
	}
}

// All that came of the command is asked when the lease is over, also who has left its group.
func TestAllAreAskedToEndWhenTheLeaseIsOver(t *testing.T) {
	guardtest.Alone(t, func(t *testing.T) {
		c := newCandidate(t)
		r := c.run(guardtest.Worker{Finish: 200 * ms, Children: []guardtest.Worker{{Name: "other", Apart: true}}}, 300*ms, 2*time.Second)
		c.ends(r, Ending{Forced: true})
		if _, ok := c.journal.Find("other", "end"); !ok {
			t.Error("it did not end in good order")
		}
	})
}

func TestGuardHasAName(t *testing.T) {
	guardtest.Alone(t, func(t *testing.T) {
		c := newCandidate(t)
		r := c.run(obedient, long, long)
		if name, err := os.ReadFile("/proc/" + strconv.Itoa(c.guard.PID()) + "/comm"); err != nil || string(name) != "tenure-guard\n" {
			t.Errorf("got %q %v", name, err)
		}
		c.guard.Kill()
		c.ends(r, killed)
	})
}

// Where the kernel does not let the guard have its lines, nobody should lead and find that out then.
func TestGuardThatCannotHaveItsTimer(t *testing.T) {
	guardtest.Alone(t, func(t *testing.T) {
		if err := unix.Setrlimit(unix.RLIMIT_SIGPENDING, &unix.Rlimit{}); err != nil {
			t.Fatal(err)
		}
		g, err := Start(guardtest.Guard())
		if err == nil || !strings.Contains(err.Error(), "make a timer") {
			t.Errorf("got %v, %v", g, err)
		}
	})
}

// Without /proc nobody can look for what came of the command.
func TestGuardWithoutProc(t *testing.T) {
	guardtest.Alone(t, func(t *testing.T) {
		if os.Getuid() != 0 {
			t.Skip("only root can have none")
		}
		g, err := Start(exec.Command("/usr/bin/unshare", "--mount", "/bin/sh", "-c", `mount -t tmpfs none /proc && exec "$0" "$@"`, guardtest.Self(), "guard"))
		if err == nil || !strings.Contains(err.Error(), "/proc is not there") {
			t.Errorf("got %v, %v", g, err)
		}
	})
}
