//go:build integration

package guard

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/tenure-go/tenure/cmd/internal/test/guardtest"
	"github.com/tenure-go/tenure/cmd/internal/test/must"
	"github.com/tenure-go/tenure/internal/test/wait"
	"golang.org/x/sys/unix"
)

// modes are the two ways to a PID namespace. The test skips a way that this user does not have.
var modes = []mode{asRoot, asUser}

// isolated returns a candidate whose guard runs commands in PID namespaces.
func isolated(t *testing.T, m mode) *candidate {
	t.Helper()
	switch {
	case m == asUser:
		withoutAdmin(t)
	case !administers():
		t.Skip("this needs CAP_SYS_ADMIN")
	}
	command := guardtest.Guard()
	if Isolate(command); command.Args[len(command.Args)-1] != string(m) {
		t.Fatalf("the guard gets %q, want %s", command.Args, m)
	}
	return candidateOf(t, command)
}

// withoutAdmin takes CAP_SYS_ADMIN from the thread of this test.
func withoutAdmin(t *testing.T) {
	t.Helper()
	runtime.LockOSThread()
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	err := unix.Capget(&header, &data[0])
	data[0].Effective &^= 1 << unix.CAP_SYS_ADMIN
	data[0].Permitted &^= 1 << unix.CAP_SYS_ADMIN
	if err == nil {
		err = unix.Capset(&header, &data[0])
	}
	must.OK(t, err)
}

// inNamespaces runs a test in each mode, in a process of its own.
func inNamespaces(t *testing.T, play func(c *candidate)) {
	t.Parallel()
	for _, m := range modes {
		t.Run(string(m), func(t *testing.T) {
			guardtest.Alone(t, func(t *testing.T) {
				Adopt() // processes that outlive the guard become children of this process
				play(isolated(t, m))
			})
		})
	}
}

// strayers start a process outside of their own process group: timeout makes a group of its own,
// and set -m one for each job. A daemon makes a session of its own.
var strayers = []string{"timeout 1000 sleep 1000", "bash -c 'set -m; sleep 1000 & wait'", "setsid sleep 1000"}

// straying is a script with such processes, which ignore SIGTERM. When they have left its group, it
// creates the file named by $READY.
func straying() string {
	return `trap "" TERM; ` + strings.Join(strayers, " & ") + " & " + fmt.Sprintf(
		`until [ $(ps -e -o pgid=,comm= | grep sleep | grep -vc "^ *$$ ") = %d ]; do sleep 0.01; done; touch $READY; wait`, len(strayers))
}

// strays starts that script, and returns when the processes run.
func (c *candidate) strays() *Run {
	c.Helper()
	file := filepath.Join(guardtest.Dir(c.T), "ready")
	r := c.start(shell(straying(), "READY="+file), 400*ms)
	c.exists(file)
	return r
}

// exists waits for a file.
func (c *candidate) exists(file string) {
	c.Helper()
	wait.Succeeds(c.T, "the processes run", func(context.Context) error {
		_, err := os.Stat(file)
		return err
	})
}

// nothingIsLeft waits until this process has no children, and so no descendants.
func (c *candidate) nothingIsLeft() {
	c.Helper()
	wait.Succeeds(c.T, "the end of all processes", func(context.Context) error {
		for {
			if pid, err := unix.Wait4(-1, nil, unix.WNOHANG, nil); err != nil {
				return nil
			} else if pid == 0 {
				all, _ := descendants(os.Getpid(), nil, unhurried)
				return fmt.Errorf("%v are left", all)
			}
		}
	})
}

func TestIsolatedCommandSeesItsNamespace(t *testing.T) {
	inNamespaces(t, func(c *candidate) {
		out := filepath.Join(guardtest.Dir(c.T), "out")
		const script = `{ pwd; id -u; [ $(ls -d /proc/[0-9]* | wc -l) -lt 6 ] && echo few; readlink /proc/$$/exe; cat /proc/1/comm; grep CapAmb /proc/self/status; } >$OUT; exit 7`
		r := c.start(shell(script, "OUT="+out), long)
		c.expect(r, Event{Ended: &Ending{Code: 7}}, Event{Empty: true})
		dir, _ := os.Getwd()
		shell, _ := filepath.EvalSymlinks("/bin/sh")
		got, err := os.ReadFile(out)
		want := fmt.Sprintf("%s\n%d\nfew\n%s\ntenure-init\nCapAmb:\t%016x\n", dir, os.Getuid(), shell, 0)
		if err != nil || string(got) != want {
			c.Errorf("got %q %v, want %q", got, err, want)
		}
	})
}

func TestIsolatedProcessesEndWithTheGuard(t *testing.T) {
	inNamespaces(t, func(c *candidate) {
		r := c.strays()
		c.guard.Abandon()
		c.guardDies()
		c.rest(r)
		c.nothingIsLeft() // without Sweep
	})
}

// The guard ends the processes by their init. It needs no search, which may take long.
func TestIsolatedProcessesAreKilledAtOnce(t *testing.T) {
	inNamespaces(t, func(c *candidate) {
		r := c.strays()
		c.guard.Kill()
		c.expect(r, Event{Ended: &killed}, Event{Empty: true})
		c.guard.Close()
		c.nothingIsLeft()
	})
}

// The command's end is not that of the processes that it has left behind: these get SIGTERM, and
// the guard reports the end of the last one. Those that end by then do so in good order.
func TestIsolatedLeftoversAreEnded(t *testing.T) {
	inNamespaces(t, func(c *candidate) {
		out := filepath.Join(guardtest.Dir(c.T), "out")
		for why, script := range map[string]string{
			"nothing":                  "exit 3",
			"one that has ended":       "sleep 0 & exit 3",
			"an orphan that is reaped": `p=$(sh -c 'sleep 0.1 >/dev/null & echo $!'); while [ -e /proc/$p ]; do sleep 0.01; done; exit 3`,
			"a child":                  "sleep 1000 & exit 3",
			"a child's child":          "(sleep 1000 & wait) & exit 3",
			"one outside":              "setsid sleep 1000 & exit 3",
			"one that ignores that":    `trap "" TERM; setsid sleep 1000 & exit 3`,
			"one that needs time":      `(trap "sleep 0.1; touch $OUT; exit" TERM; touch $READY; while :; do sleep 0.01; done) & until [ -e $READY ]; do :; done; exit 3`,
		} {
			stop := long
			if strings.Contains(script, `""`) {
				stop = 400 * ms
			}
			r := c.start(shell(script, "OUT="+out, "READY="+out+"-ready"), stop)
			if got := c.rest(r); len(got) != 2 || got[0].Ended == nil || *got[0].Ended != (Ending{Code: 3}) || !got[1].Empty {
				c.Errorf("%s: got %s", why, show(got))
			}
		}
		if _, err := os.Stat(out); err != nil {
			c.Error(err)
		}
		c.guard.Close()
		c.nothingIsLeft()
	})
}

func TestIsolatedProcessesGetSignals(t *testing.T) {
	inNamespaces(t, func(c *candidate) {
		const script = `trap "" USR2; trap "echo command >>$OUT; exit 4" USR1; ` +
			`(trap "echo child >>$OUT; kill -USR1 $$" USR2; touch $READY; while :; do sleep 0.01; done) & while :; do sleep 0.01; done`
		dir := guardtest.Dir(c.T)
		out, file := filepath.Join(dir, "out"), filepath.Join(dir, "ready")
		r := c.start(shell(script, "OUT="+out, "READY="+file), long)
		c.exists(file)
		c.guard.Signal(unix.SIGUSR2, true)
		c.expect(r, Event{Ended: &Ending{Code: 4}}, Event{Empty: true})
		if got, err := os.ReadFile(out); err != nil || string(got) != "child\ncommand\n" {
			c.Errorf("got %q %v", got, err)
		}
	})
}

func TestIsolatedCommandThatCannotBeStarted(t *testing.T) {
	inNamespaces(t, func(c *candidate) {
		r := c.guard.Run(NewCommand("/nonexistent", []string{"x"}, nil), c.lease(), long)
		if got := c.rest(r); len(got) != 2 || got[0].Failed == nil || !got[0].Failed.Missing || !got[1].Empty {
			c.Errorf("got %s", show(got))
		}
		c.guard.Close()
		c.nothingIsLeft()
	})
}

// When both are killed or stopped, only the kernel is left.
func TestIsolatedProcessesEndWithoutCandidateAndGuard(t *testing.T) {
	t.Parallel()
	for _, m := range modes {
		for why, both := range map[string]unix.Signal{"killed": unix.SIGKILL, "stopped": unix.SIGSTOP} {
			t.Run(string(m)+" "+why, func(t *testing.T) {
				guardtest.Apart(t, func(t *testing.T) {
					c := isolated(t, m)
					c.journal.Add("guard", strconv.Itoa(c.guard.PID()))
					c.strays()
					c.shorten(600 * ms)
					c.journal.Add("candidate", "ready")
					select {}
				}, func(p *guardtest.Process) {
					j := ready(p)
					p.Signal(both)
					if err := unix.Kill(guardOf(j), both); err != nil {
						t.Error(err)
					}
					if both == unix.SIGKILL {
						_ = p.Cmd.Wait()
					}
					awaitEndOf(t, p.Dir)
				})
			})
		}
	}
}

// awaitEndOf waits until no process of the script in this directory runs.
func awaitEndOf(t *testing.T, dir string) {
	t.Helper()
	wait.Succeeds(t, "the end of all processes", func(context.Context) error {
		entries, err := os.ReadDir("/proc")
		for _, e := range entries {
			environ, _ := os.ReadFile("/proc/" + e.Name() + "/environ")
			if strings.Contains(string(environ), "READY="+dir+"/") {
				return fmt.Errorf("process %s is left", e.Name())
			}
		}
		return err
	})
}

// The candidate learns the reason before it leads. A container may hide parts of /proc, and then
// the system mounts no other /proc for an ordinary user.
func TestRefusedNamespace(t *testing.T) {
	guardtest.Alone(t, func(t *testing.T) {
		if !administers() {
			t.Skip("only root can hide a part of /proc")
		}
		runtime.LockOSThread()
		must.OK(t, errors.Join(unix.Unshare(unix.CLONE_NEWNS), unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""),
			unix.Mount("/dev/null", "/proc/uptime", "", unix.MS_BIND, "")))
		withoutAdmin(t)
		command := guardtest.Guard()
		Isolate(command)
		g, err := Start(command)
		if err == nil || !strings.Contains(err.Error(), "make a PID namespace: mount its /proc: operation not permitted") {
			t.Errorf("got %v, %v", g, err)
		}
	})
}
