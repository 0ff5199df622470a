//go:build integration

package guard

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tenure-go/tenure/clock"
	"github.com/tenure-go/tenure/cmd/internal/test/guardtest"
	"github.com/tenure-go/tenure/cmd/internal/test/must"
	"golang.org/x/sys/unix"
)

// spread is a command with a child outside of its group.
var spread = guardtest.Worker{Deaf: true, Children: []guardtest.Worker{
	{Name: "child", Deaf: true}, {Name: "other", Deaf: true, Apart: true},
}}

// The tripwire covers the group. The parent-death signal covers a command that has left it.
func TestCommandDiesWithItsGuard(t *testing.T) {
	t.Parallel()
	for why, w := range map[string]guardtest.Worker{"in its group": deafParent, "outside of it": {Deaf: true, Strays: true}} {
		t.Run(why, func(t *testing.T) {
			withCandidate(t, func(t *testing.T, c *candidate) {
				r := c.run(w, long, long)
				c.guard.Abandon()
				c.guardDies()
				if got := c.rest(r); len(got) > 0 {
					t.Errorf("a dead guard reports: %s", show(got))
				}
				c.journal.AwaitEnd(t, "") // by themselves
				if !w.Strays {
					Sweep(c.pid(), nil)
				}
			})
		})
	}
}

// When both are dead, the processes that the tripwire should kill hold its other end, or the guard
// was the last to hold it.
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
				c.journal.Await(t, "command", "SIGTERM") // by now the guard has noticed
				if err := unix.Kill(guardOf(c.journal), unix.SIGKILL); err != nil {
					t.Error(err)
				}
				c.journal.AwaitEnd(t, "")
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

// The kernel kills the given process and its group. Sweep finds descendants that have left the
// group by their parents.
func TestSweepFindsProcessesThatLeftTheGroup(t *testing.T) {
	t.Parallel()
	for why, known := range map[string]bool{"and the process": true, "before the process is known": false} {
		t.Run(why, func(t *testing.T) {
			guardtest.Alone(t, func(t *testing.T) {
				Adopt()
				c := newCandidate(t)
				c.run(spread, long, long)
				c.guard.Abandon()
				c.guardDies()
				c.goOn("other") // otherwise there is nothing to find
				pid := c.pid()
				if !known {
					pid = 0
				}
				if !Sweep(pid, nil) {
					t.Error("Sweep gave up")
				}
				c.nothingRuns()
			})
		})
	}
}

// A program that starts tenure by "helper & exec tenure run ..." leaves it a child that is not an
// orphan.
func TestSweepSparesEarlierProcesses(t *testing.T) {
	guardtest.Alone(t, func(t *testing.T) {
		helper := exec.Command("/bin/sleep", "100")
		must.OK(t, helper.Start())
		Adopt()
		c := newCandidate(t)
		c.run(guardtest.Worker{Deaf: true, Children: []guardtest.Worker{{Name: "other", Deaf: true, Apart: true}}}, long, long)
		c.guard.Abandon()
		c.guardDies()
		if !Sweep(c.pid(), nil) {
			t.Error("Sweep gave up")
		}
		var status unix.WaitStatus
		if pid, err := unix.Wait4(helper.Process.Pid, &status, unix.WNOHANG, nil); pid != 0 || err != nil {
			t.Errorf("the helper has ended: %v %v", status, err)
		}
		_ = helper.Process.Kill()
		_ = helper.Wait()
	})
}

// The commands of other guards go on.
func TestSweepSparesOtherGuards(t *testing.T) {
	guardtest.Alone(t, func(t *testing.T) {
		Adopt()
		other, c := newCandidate(t), newCandidate(t)
		goesOn := other.start(shell("exec sleep 100"), long)
		c.run(spread, long, long)
		c.guard.Abandon()
		c.guardDies()
		if !Sweep(c.pid(), nil) {
			t.Error("Sweep gave up")
		}
		c.nothingRuns()
		other.guard.Signal(unix.SIGTERM, false)
		// the sweep would have killed it
		other.expect(goesOn, Event{Ended: &Ending{Signal: int(unix.SIGTERM)}}, Event{Empty: true})
	})
}

// Sweep waits for processes of other users until it is canceled.
func TestSweepCanBeCanceled(t *testing.T) {
	guardtest.Alone(t, func(t *testing.T) {
		if os.Getuid() != 0 {
			t.Skip("only root can be two users")
		}
		c := exec.Command("/bin/sleep", "100")
		must.OK(t, c.Start())
		const nobody = 65534
		must.OK(t, syscall.Setresuid(nobody, nobody, 0))
		giveUp := make(chan struct{})
		close(giveUp)
		if Sweep(0, giveUp) {
			t.Error("Sweep did not give up")
		}
		must.OK(t, syscall.Setresuid(0, 0, 0))
		if !Sweep(0, nil) {
			t.Error("Sweep gave up")
		}
	})
}

// The kernel continues a stopped guard in time for what it has to do.
func TestStoppedGuardIsContinuedByTheKernel(t *testing.T) {
	withCandidate(t, func(t *testing.T, c *candidate) {
		r := c.run(deafParent, 600*ms, 800*ms)
		must.OK(t, unix.Kill(c.guard.PID(), unix.SIGSTOP))
		c.isKilled(r, 600*ms, 800*ms)
	})
}

// The kernel kills a guard that does not act although it was continued, as under a debugger. Before
// that its killer acts at the deadline, also against processes outside of the group, which the
// kernel does not kill with the guard. It knows them since the last renewal.
func TestCommandOfAHangingGuardIsKilled(t *testing.T) {
	t.Parallel()
	for why, c := range map[string]struct {
		except string // the thread that goes on
		worker guardtest.Worker
		stop   time.Duration
	}{
		"by the kernel": {"", deafParent, 800 * ms},
		"by the killer": {killerName, spread, 4 * time.Second},
	} {
		t.Run(why, func(t *testing.T) {
			withCandidate(t, func(t *testing.T, a *candidate) {
				a.run(c.worker, 600*ms, c.stop)
				threads := a.hang(c.except)
				a.journal.AwaitEnd(t, "")
				a.lasted(600*ms + c.stop - Reserve(c.stop))
				for _, thread := range threads {
					_, _ = unix.Wait4(thread, nil, unix.WALL, nil)
				}
				a.guardDies()
				Sweep(a.pid(), nil)
			})
		})
	}
}

// hang makes this thread the debugger of the guard, and stops its threads, except those with one
// name. It returns them without the first.
func (c *candidate) hang(except string) (threads []int) {
	c.Helper()
	runtime.LockOSThread()
	for thread, name := range c.threads() {
		if name == except {
			continue
		}
		err := errors.Join(unix.PtraceSeize(thread), unix.PtraceInterrupt(thread))
		if _, failed := unix.Wait4(thread, nil, unix.WALL, nil); err != nil || failed != nil {
			c.Fatal(err, failed)
		}
		if thread != c.guard.PID() {
			threads = append(threads, thread)
		}
	}
	return threads
}

// threads returns the names of the guard's threads.
func (c *candidate) threads() map[int]string {
	c.Helper()
	all := map[int]string{}
	files, err := filepath.Glob("/proc/" + strconv.Itoa(c.guard.PID()) + "/task/*/comm")
	for _, file := range files {
		name, _ := os.ReadFile(file)
		thread, _ := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		all[thread] = strings.TrimSpace(string(name))
	}
	if err != nil || len(all) == 0 {
		c.Fatal("the guard has no threads")
	}
	return all
}

// When both are stopped, the guard also ends processes outside of the group. If the kernel killed a
// late guard, nothing else would. So the guard has the longest reserve: a machine may stand still.
func TestStoppedGuardOfAStoppedCandidateIsContinuedByTheKernel(t *testing.T) {
	const stop = 4 * time.Second
	guardtest.Apart(t, func(t *testing.T) {
		c := newCandidate(t)
		r := c.run(spread, 800*ms, stop)
		must.OK(t, unix.Kill(c.guard.PID(), unix.SIGSTOP))
		c.journal.Add("candidate", "ready")
		must.OK(t, unix.Kill(os.Getpid(), unix.SIGSTOP))
		c.swept(c.rest(r)) // if the guard was late
	}, func(p *guardtest.Process) {
		j := ready(p)
		j.AwaitEnd(t, "")
		(&candidate{T: t, journal: j}).lasted(800*ms + stop - Reserve(stop))
		p.Signal(unix.SIGCONT)
		p.Passes()
	})
}

// A guard that was stopped for a while continues with the pending actions.
func TestResumedGuardContinues(t *testing.T) {
	withCandidate(t, func(t *testing.T, c *candidate) {
		r := c.run(obedient, long, long)
		for _, s := range []unix.Signal{unix.SIGSTOP, unix.SIGCONT} {
			must.OK(t, unix.Kill(c.guard.PID(), s))
		}
		c.guard.Signal(unix.SIGTERM, true)
		c.ends(r, Ending{})
	})
}

// When the lease is over, all descendants of the command are asked to end, including those that
// left its group.
func TestDescendantsAreAskedToEndWhenTheLeaseIsOver(t *testing.T) {
	withCandidate(t, func(t *testing.T, c *candidate) {
		r := c.run(guardtest.Worker{Finish: 200 * ms, Children: []guardtest.Worker{{Name: "other", Apart: true}}}, 300*ms, long)
		c.ends(r, Ending{Forced: true})
		if _, ok := c.journal.Find("other", "end"); !ok {
			t.Error("it did not shut down cleanly")
		}
	})
}

// Other work of a busy machine must not delay SIGKILL. The command keeps the priority of the
// candidate.
func TestKillerIsUrgent(t *testing.T) {
	guardtest.Alone(t, func(t *testing.T) {
		runtime.LockOSThread() // the guard inherits its priority
		urgent := &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_RR, Priority: 1}
		allowed := unix.SchedSetAttr(0, urgent, 0) == nil // in many containers it is not
		must.OK(t, unix.SchedSetAttr(0, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Nice: 5}, 0))
		c := newCandidate(t)
		r := c.run(obedient, long, long)
		threads := c.threads()
		if name := threads[c.guard.PID()]; name != "tenure-guard" {
			t.Errorf("people see the name %s", name)
		}
		for thread, name := range threads {
			a, err := unix.SchedGetAttr(thread, 0)
			if want := allowed && name == killerName; err != nil || (a.Policy == unix.SCHED_RR) != want {
				t.Errorf("thread %d of the guard, %s: %+v %v, allowed: %t", thread, name, a, err, allowed)
			}
		}
		if a, err := unix.SchedGetAttr(c.pid(), 0); err != nil || a.Policy != unix.SCHED_NORMAL || a.Nice != 5 {
			t.Errorf("the command: %+v %v", a, err)
		}
		c.guard.Kill()
		c.ends(r, killed)
	})
}

// Where the kernel refuses the guard's timer, a candidate must find that out before it leads.
func TestGuardWithoutAKernelTimer(t *testing.T) {
	guardtest.Alone(t, func(t *testing.T) {
		must.OK(t, unix.Setrlimit(unix.RLIMIT_SIGPENDING, &unix.Rlimit{}))
		g, err := Start(guardtest.Guard())
		if err == nil || !strings.Contains(err.Error(), "make a timer") {
			t.Errorf("got %v, %v", g, err)
		}
	})
}

// Without /proc the guard cannot find the command's descendants.
func TestGuardWithoutProc(t *testing.T) {
	guardtest.Alone(t, func(t *testing.T) {
		if os.Getuid() != 0 {
			t.Skip("only root can have none")
		}
		g, err := Start(exec.Command("/usr/bin/unshare", "--mount", "/bin/sh", "-c", `mount -t tmpfs none /proc && exec "$0" "$@"`, guardtest.Self(), "guard"))
		if err == nil || !strings.Contains(err.Error(), "/proc is missing") {
			t.Errorf("got %v, %v", g, err)
		}
	})
}

// The timer may fire just when a renewal puts off the deadline.
func TestKillerChecksTheDeadline(t *testing.T) {
	k := newKiller()
	if k == nil {
		t.Skip("the system lacks what it needs")
	}
	c := exec.Command("cat")
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	in, err := c.StdinPipe()
	out, failed := c.StdoutPipe()
	must.OK(t, errors.Join(err, failed, c.Start()))
	j := &job{pid: c.Process.Pid, killer: k}
	k.aim(j)
	now := clock.System{}.Now()
	k.at(now, time.Hour)
	k.kill(now)
	echo := make([]byte, 1)
	_, err = in.Write([]byte("x"))
	if _, failed := out.Read(echo); err != nil || failed != nil {
		t.Errorf("an hour before the deadline: %v, %v", err, failed)
	}
	k.at(now, time.Nanosecond)
	var status unix.WaitStatus
	if _, err := unix.Wait4(j.pid, &status, 0, nil); err != nil || status.Signal() != unix.SIGKILL {
		t.Errorf("at the deadline: %v %v", status, err)
	}
	j.reaped = true
	k.aim(nil)
}

// family is a command with children in its group and outside of it, and with a grandchild.
var family = guardtest.Worker{Children: []guardtest.Worker{
	{Name: "child"},
	{Name: "other", Apart: true, Children: []guardtest.Worker{{Name: "grandchild"}}},
}}

// The kernel's lists and a scan of all processes show the same descendants.
func TestDescendants(t *testing.T) {
	withCandidate(t, func(t *testing.T, c *candidate) {
		r := c.run(family, long, long)
		lists, whole := descendants(os.Getpid(), nil, unhurried)
		if want := append(c.journal.Workers(""), c.guard.PID()); !whole || !slices.Equal(numbers(lists), slices.Sorted(slices.Values(want))) {
			t.Errorf("got %v, want %v", lists, want)
		}
		children, whole := scan(time.Now().Add(unhurried))
		for _, f := range append(lists, lookAt(os.Getpid())) {
			if lists, scanned := numbers(childrenOf(f.pid)), numbers(children(f.pid)); !slices.Equal(lists, scanned) || !whole {
				t.Errorf("children of %d: %v in the lists, %v in the scan", f.pid, lists, scanned)
			}
		}
		c.guard.Signal(unix.SIGTERM, true)
		c.rest(r)
	})
}

func numbers(all []found) (pids []int) {
	for _, f := range all {
		pids = append(pids, f.pid)
	}
	slices.Sort(pids)
	return pids
}

// A search without time finds a part at most, and says so. Then a job keeps what it found before.
func TestSearchStopsInTime(t *testing.T) {
	withCandidate(t, func(t *testing.T, c *candidate) {
		r := c.run(family, long, long)
		if all, whole := descendants(os.Getpid(), nil, 0); whole || len(all) > 1 {
			t.Errorf("got %v %v", all, whole)
		}
		before := found{pid: os.Getpid(), start: "1"}
		j := job{found: []found{before}}
		if j.search(0); !slices.Contains(j.found, before) {
			t.Errorf("a search without time leaves %v", j.found)
		}
		if j.search(unhurried); slices.Contains(j.found, before) {
			t.Errorf("a whole search leaves %v", j.found)
		}
		if children, whole := scan(time.Now()); whole || children(os.Getpid()) != nil {
			t.Errorf("the scan is whole: %v", whole)
		}
		c.guard.Signal(unix.SIGTERM, true)
		c.rest(r)
	})
}

// A process number may belong to another process meanwhile.
func TestSignalIsForTheProcessThatWasFound(t *testing.T) {
	self := lookAt(os.Getpid())
	if self.parent != os.Getppid() || self.start == "" {
		t.Fatalf("got %+v", self)
	}
	found{pid: self.pid, start: self.start + "0"}.signal(unix.SIGKILL)
}
