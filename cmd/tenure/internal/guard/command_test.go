//go:build integration && unix

package guard

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tenure-go/tenure/cmd/internal/stamp"
	"github.com/tenure-go/tenure/cmd/internal/test/guardtest"
	"github.com/tenure-go/tenure/cmd/internal/test/must"
	"github.com/tenure-go/tenure/internal/test/wait"
	"golang.org/x/sys/unix"
)

// One guard runs one command after the other.
func TestEventsReportTheEndOfACommand(t *testing.T) {
	withCandidate(t, func(t *testing.T, c *candidate) {
		for script, want := range map[string]Ending{
			"exit 0": {}, "exit 7": {Code: 7}, "kill -9 $$": {Signal: 9}, "kill -15 $$": {Signal: 15}, "exit 255": {Code: 255},
		} {
			c.runs(shell(script), want)
		}
	})
}

// Arguments, environment and file names need not be text.
func TestNonTextBytesReachTheCommand(t *testing.T) {
	withCandidate(t, func(t *testing.T, c *candidate) {
		dir := guardtest.Dir(t)
		file := filepath.Join(dir, "sh\xff")
		if err := os.Symlink("/bin/sh", file); err != nil {
			t.Skip("the file system wants text: ", err)
		}
		env := []string{"X=a\377b\xc3", "OUT=" + filepath.Join(dir, "out"), "EMPTY="}
		args := []string{"s\xfeh", "-c", `printf '%s\n' "$0" "$1" "$#" "$X" "${EMPTY-none}" "${PATH_NOT_GIVEN-none}" >"$OUT"`, "c\376\x01", "", "\xed\xa0\x80"}
		c.runs(NewCommand(file, args, env), Ending{})
		got, err := os.ReadFile(filepath.Join(dir, "out"))
		if want := "c\376\x01\n\n2\na\377b\xc3\n\nnone\n"; err != nil || string(got) != want {
			t.Errorf("got %q %v, want %q", got, err, want)
		}
	})
}

// A command can have its output in a file, which it need not be able to write to by itself.
func TestOutputGoesToAFile(t *testing.T) {
	withCandidate(t, func(t *testing.T, c *candidate) {
		file := filepath.Join(guardtest.Dir(t), "output")
		for range 2 { // the second one is added
			command := shell("echo out; echo err >&2")
			command.Output = []byte(file)
			c.runs(command, Ending{})
		}
		if got, err := os.ReadFile(file); err != nil || string(got) != "out\nerr\nout\nerr\n" {
			t.Errorf("got %q, %v", got, err)
		}
		command := shell("exit 0")
		command.Output = []byte(filepath.Join(file, "below"))
		r := c.guard.Run(command, c.lease(), long)
		if e, _ := c.next(r); e.Failed == nil || !strings.Contains(e.Failed.Text, "keep the output: open ") {
			t.Errorf("got %+v", e)
		}
		c.rest(r)
	})
}

func TestCommandSharesTheCandidatesOutput(t *testing.T) {
	guardtest.Alone(t, func(t *testing.T) {
		out, in := os.Stdout, os.Stdin
		defer func() { os.Stdout, os.Stdin = out, in }()
		os.Stdout = file(t, "out", "")
		os.Stdin = file(t, "in", "\x00\xff\n")
		c := newCandidate(t)
		c.runs(NewCommand("/bin/cat", []string{"cat"}, nil), Ending{})
		if got, err := os.ReadFile(os.Stdout.Name()); err != nil || !bytes.Equal(got, []byte("\x00\xff\n")) {
			t.Errorf("got %q %v", got, err)
		}
	})
}

func file(t *testing.T, name, content string) *os.File {
	t.Helper()
	path := filepath.Join(guardtest.Dir(t), name)
	must.Write(t, path, content)
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	must.OK(t, err)
	t.Cleanup(func() { _ = f.Close() })
	return f
}

// The command gets the files that a service manager or a shell has opened, but not the guard's own
// files.
func TestInheritedFilesKeepTheirNumbers(t *testing.T) {
	var files []*os.File
	for range 4 {
		f, err := os.CreateTemp(t.TempDir(), "")
		must.OK(t, err)
		defer f.Close()
		files = append(files, f)
	}
	guardtest.Apart(t, func(t *testing.T) {
		want := guardtest.Given()
		if FindsOrphans { // and there is a tripwire
			want = append(want, "high")
		}
		c := newCandidate(t)
		c.runs(c.worker(guardtest.Worker{For: 1}), Ending{})
		var got []string
		for _, n := range c.journal.Notes() {
			if fd, is := strings.CutPrefix(n.What, "file:"); is {
				got = append(got, fd)
			}
		}
		if !slices.Equal(got, want) || !slices.Contains(got, "6") {
			t.Errorf("the command has the files %v, want %v", got, want)
		}
		c.runs(shell("for i in 3 4 5 6; do echo file $i >&$i; done"), Ending{})
	}, func(p *guardtest.Process) {
		p.Passes()
		for i, f := range files {
			want := fmt.Sprintf("file %d\n", 3+i)
			if got, err := os.ReadFile(f.Name()); err != nil || string(got) != want {
				t.Errorf("got %q %v, want %q", got, err, want)
			}
		}
	}, files...)
}

func TestCommandThatCannotBeStarted(t *testing.T) {
	guardtest.Alone(t, func(t *testing.T) {
		plain := file(t, "plain", "#!/bin/sh\n").Name()
		for _, c := range []struct {
			why, path string
			missing   bool
		}{
			{"no such file", plain + ".not", true},
			{"no right to execute it", plain, false},
			{"a directory", guardtest.Dir(t), false},
		} {
			t.Run(c.why, func(t *testing.T) {
				a := newCandidate(t)
				r := a.guard.Run(NewCommand(c.path, []string{"x"}, nil), a.lease(), long)
				got := a.rest(r)
				if len(got) != 2 || got[0].Failed == nil || got[1] != (Event{Empty: true}) {
					t.Fatalf("got %s", show(got))
				}
				if f := got[0].Failed; f.Missing != c.missing || !strings.Contains(f.Error(), c.path) {
					t.Errorf("got %+v", f)
				}
			})
		}
	})
}

func TestSignalsReachTheCommandAloneOrAllProcesses(t *testing.T) {
	withCandidate(t, func(t *testing.T, c *candidate) {
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
		if _, is := c.journal.Find("command", "SIGTERM"); is {
			t.Error("it was asked before it was killed")
		}
		c.runs(shell("exit 2"), Ending{Code: 2}) // the order was for the first command
	})
}

// A command that a key has stopped could not be continued from the keyboard, least of all if only
// other processes of its group are stopped: then the guard does not notice it either.
func TestKeyboardSuspendsNothing(t *testing.T) {
	withCandidate(t, func(t *testing.T, c *candidate) {
		r := c.run(deafParent, long, long)
		must.OK(t, unix.Kill(c.journal.Await(t, "child", "begin").PID, unix.SIGTSTP))
		c.goOn("child")
		must.OK(t, unix.Kill(-c.pid(), unix.SIGTSTP))
		c.goOn("command", "child", "other")
		c.guard.Kill()
		c.ends(r, killed)
	})
}

// A command may have reset the handling of these signals for itself and all its children.
func TestGroupSuspendedFromTheKeyboardIsContinued(t *testing.T) {
	guardtest.Alone(t, func(t *testing.T) {
		perl, err := exec.LookPath("perl") // a shell cannot do that
		must.OK(t, err)
		c := newCandidate(t)
		w := c.worker(deafParent)
		w.Args = append([][]byte{[]byte("perl"), []byte("-e"), []byte(`$SIG{TSTP} = "DEFAULT"; exec @ARGV`), w.Path}, w.Args[1:]...)
		w.Path = []byte(perl)
		r := c.start(w, long)
		must.OK(t, unix.Kill(-c.pid(), unix.SIGTSTP))
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

// A signal that ends the candidate, or all processes of a terminal or a service, must not end the
// guard. It is in no foreground group of the terminal, and the command is not in its group.
func TestGuardIgnoresSignals(t *testing.T) {
	withCandidate(t, func(t *testing.T, c *candidate) {
		r := c.run(obedient, long, long)
		for who, pid := range map[string]int{"guard": c.guard.PID(), "command": c.pid()} {
			if group, err := unix.Getpgid(pid); err != nil || group != pid {
				t.Errorf("the %s %d is in group %d %v", who, pid, group, err)
			}
		}
		for _, s := range []syscall.Signal{
			unix.SIGHUP, unix.SIGINT, unix.SIGQUIT, unix.SIGTERM, unix.SIGUSR1, unix.SIGUSR2, unix.SIGALRM, unix.SIGWINCH,
		} {
			must.OK(t, unix.Kill(c.guard.PID(), s))
		}
		c.guard.Signal(unix.SIGTERM, false)
		c.ends(r, Ending{})
		if c.guard.Gone() {
			t.Error(c.guard.Err())
		}
	})
}

// A command has ended only when none of its processes is left. The stop time is long unless one of
// them is deaf.
func TestLeftoversAreEnded(t *testing.T) {
	t.Parallel()
	for why, left := range map[string]guardtest.Worker{
		"one outside of the group":           {Apart: true, Finish: 300 * ms},
		"one outside that ignores that":      {Apart: true, Deaf: true},
		"one that ends when asked":           {},
		"one that takes its time":            {Finish: 300 * ms},
		"one that ignores that":              {Deaf: true},
		"one with a child of its own":        {Deaf: true, Children: []guardtest.Worker{{Name: "grandchild", Deaf: true}}},
		"one that ended, and left one":       {For: 1, Children: []guardtest.Worker{{Name: "grandchild", Deaf: true}}},
		"one that ends when asked, with one": {Children: []guardtest.Worker{{Name: "grandchild", Deaf: true}}},
	} {
		t.Run(why, func(t *testing.T) {
			if left.Apart && !FindsOrphans {
				t.Skip("here no search finds it")
			}
			withCandidate(t, func(t *testing.T, c *candidate) {
				stop := long
				if left.Deaf || len(left.Children) > 0 {
					stop = 800 * ms
				}
				left.Name = "left"
				r := c.start(c.worker(guardtest.Worker{Code: 6, For: 1, Children: []guardtest.Worker{left}}), stop)
				c.ends(r, Ending{Code: 6})
				took := stamp.Now().Sub(c.journal.Await(t, "command", "end").At)
				if least := stop - Reserve(stop); stop != long && took < least-least/10 {
					t.Errorf("what was left had %v, of at least %v", took, least)
				}
				_, asked := c.journal.Find("left", "SIGTERM")
				if _, end := c.journal.Find("left", "end"); end && left.Deaf {
					t.Error("it has ended by itself")
				} else if stop == long && !(asked && end) {
					t.Errorf("asked: %v, ended in good order: %v", asked, end)
				}
			})
		})
	}
}

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
