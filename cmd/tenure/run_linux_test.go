//go:build integration

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/tenure-go/tenure/internal/test/wait"
)

// The first process of a container adopts the orphans of all other processes, for example those of
// a command that was started in the container from outside.
func TestRunAsTheFirstProcessOfAContainer(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("only root can make one")
	}
	w := natsHome(t).wrap(nil, "sh", "-c", "echo up $PPID; trap 'exit 3' TERM; while :; do sleep 0.02; done")
	w.cmd.Args = append([]string{"unshare", "--pid", "--fork", "--mount-proc", "--kill-child"}, w.cmd.Args...)
	w.cmd.Path = "/usr/bin/unshare"
	w.start().says("up ")
	first := w.child(w.cmd.Process.Pid)
	enter := func(script string) string {
		out, err := exec.Command("nsenter", "--target", first, "--pid", "--mount", "sh", "-c", script).CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return string(out)
	}
	orphan := strings.TrimSpace(enter("sleep 0.2 >/dev/null & echo $!"))
	wait.Succeeds(t, "the orphan is reaped", func(context.Context) error {
		if stat := enter("cat /proc/" + orphan + "/stat 2>/dev/null || echo gone"); stat != "gone\n" {
			return errors.New(stat)
		}
		return nil
	})
	var pid int
	if _, err := fmt.Sscan(first, &pid); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	w.ends(3)
}

// child returns the process ID of the only child.
func (w *wrapped) child(pid int) string {
	w.Helper()
	lists, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid)) // one for each thread
	var all []string
	for _, list := range lists {
		text, _ := os.ReadFile(list) // of a thread that may have ended
		all = append(all, strings.Fields(string(text))...)
	}
	if err != nil || len(all) != 1 {
		w.Fatalf("%q %v", all, err)
	}
	return all[0]
}

// A suspension ends in a lease that ran out, and in a guard that the kernel has killed, as
// intended.
func TestLeaseThatRanOutInASuspensionIsNoError(t *testing.T) {
	t.Parallel()
	h := natsHome(t)
	w := h.wrap([]string{"--lease", "1s"}, "sh", "-c", "echo up; exec sleep 1000").start()
	w.says("up\n")
	v := tenureRuns(t, h.args("watch")...).start()
	v.says("node-1")
	w.stopWithoutGuard()
	v.says("nobody leads")
	w.signal(syscall.SIGCONT)
	w.says("the lease ran out while the guard could not act")
	if strings.Contains(w.errs.String(), "level=ERROR") {
		t.Errorf("it says\n%s", w.errs.String())
	}
}

// stopWithoutGuard stops tenure run and kills its guard, so that neither can release the lease.
func (w *wrapped) stopWithoutGuard() {
	w.Helper()
	guard, err := strconv.Atoi(w.child(w.cmd.Process.Pid))
	if err != nil {
		w.Fatal(err)
	}
	w.signal(syscall.SIGSTOP)
	if err := syscall.Kill(guard, syscall.SIGKILL); err != nil {
		w.Fatal(err)
	}
}

// uncovered begins the line about processes that may outlive tenure.
const uncovered = "processes that leave the command's process group are not ended"

// The line is there only where such processes may be left.
func TestRunTellsWhichProcessesMayOutliveIt(t *testing.T) {
	t.Parallel()
	for why, c := range map[string]struct {
		flags []string
		by    string
		says  bool
	}{
		"from a shell":   {says: true},
		"from a unit":    {by: `SYSTEMD_EXEC_PID=$$ exec "$0" "$@"`},
		"within a unit":  {by: `SYSTEMD_EXEC_PID=$$ "$0" "$@"; true`, says: true},
		"in a namespace": {flags: []string{"--pid-namespace"}},
	} {
		t.Run(why, func(t *testing.T) {
			t.Parallel()
			w := natsHome(t).wrap(c.flags, "true")
			if c.by != "" {
				w.cmd.Args = append([]string{"sh", "-c", c.by}, w.cmd.Args...)
				w.cmd.Path = "/bin/sh"
			}
			w.start().ends(0)
			if says := strings.Contains(w.errs.String(), uncovered); says != c.says {
				t.Errorf("it says\n%s", &w.errs)
			}
		})
	}
}

// All processes of the command end with tenure and its guard, whichever of them left its group.
func TestIsolatedProcessesDoNotOutliveTenureAndItsGuard(t *testing.T) {
	t.Parallel()
	mark := fmt.Sprintf("MARK=%d-%s", os.Getpid(), t.Name())
	w := natsHome(t).wrap([]string{"--pid-namespace"}, "sh", "-c",
		`trap "" TERM; timeout 1000 sleep 1000 & bash -c "set -m; sleep 1000 & wait" & setsid sleep 1000 <&- & `+
			`until [ $(ps -e -o comm= | grep -c sleep) = 3 ]; do sleep 0.01; done; echo up; wait`)
	w.cmd.Env = append(w.cmd.Env, mark)
	w.start().says("up\n")
	out, err := exec.Command("pgrep", "-P", strconv.Itoa(w.cmd.Process.Pid)).Output()
	guard, _ := strconv.Atoi(strings.TrimSpace(string(out)))
	if err != nil || guard == 0 {
		t.Fatalf("%q %v", out, err)
	}
	// the guard is stopped first, so that it does nothing after the end of tenure
	for _, s := range []syscall.Signal{syscall.SIGSTOP, syscall.SIGKILL} {
		if err := syscall.Kill(guard, s); err != nil {
			t.Fatal(err)
		}
		if s == syscall.SIGSTOP {
			w.signal(syscall.SIGKILL)
		}
	}
	wait.Succeeds(t, "the end of all processes", func(context.Context) error {
		entries, err := os.ReadDir("/proc")
		for _, e := range entries {
			if environ, _ := os.ReadFile("/proc/" + e.Name() + "/environ"); strings.Contains(string(environ), mark+"\x00") {
				return fmt.Errorf("process %s is left", e.Name())
			}
		}
		return err
	})
}

func TestIsolatedCommandHasTheTerminal(t *testing.T) {
	t.Parallel()
	for key, code := range map[string]string{"hello\n": "6", ctrlC: "130", ctrlZ + ctrlC: "130"} {
		t.Run(code, func(t *testing.T) {
			t.Parallel()
			w := openRun(natsHome(t), []string{"--pid-namespace"}, lent+`echo up; read x; echo "command: $x"; exit 6`)
			w.Await(0, "up")
			w.Press(key)
			ended(w, code)
		})
	}
}

func TestSecondCtrlCKillsAnIsolatedCommand(t *testing.T) {
	t.Parallel()
	killedBySecondCtrlC(t, []string{"--pid-namespace"}, killable["ignores it"].script, "")
}

// The remedy is there before this candidate leads.
func TestRunWithoutTheRightToIsolate(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("only root can hide a part of /proc")
	}
	w := natsHome(t).wrap([]string{"--pid-namespace"}, "true")
	w.cmd.Args = append([]string{"unshare", "--mount", "sh", "-c",
		`mount --bind /dev/null /proc/uptime && exec setpriv --bounding-set=-sys_admin "$0" "$@"`}, w.cmd.Args...)
	w.cmd.Path = "/usr/bin/unshare"
	w.start().ends(125)
	const says = "error: --pid-namespace: start the guard: make a PID namespace: mount its /proc: operation not permitted\nhint: if the system refuses it, allow"
	if got := w.errs.String(); !strings.Contains(got, says) {
		t.Errorf("it says\n%s", got)
	}
}

// Observers that start late do not say that a leader leads before it renews: neither of one that is
// alive, nor of one whose processes were killed.
func TestObserversThatStartLate(t *testing.T) {
	t.Parallel()
	for name, home := range map[string]func(*testing.T) *home{
		"NATS":   natsHome,
		"SQLite": func(t *testing.T) *home { return homeAt(t, "sqlite:"+filepath.Join(t.TempDir(), "e.db")) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := home(t)
			w := h.wrap([]string{"--lease", "2s"}, "sh", "-c", "echo up; exec sleep 1000").start()
			w.says("up\n")
			alive := tenureRuns(t, h.args("watch")...).start()
			alive.says("  node-1 leads in term")
			if said := alive.out.String(); !strings.Contains(said, "is not confirmed: last written ") || !strings.Contains(said, ", since at least ") {
				t.Errorf("of a leader that is alive, watch says\n%s", said)
			}
			w.stopWithoutGuard()
			w.signal(syscall.SIGKILL)
			alive.says("nobody leads: ")
			saysDead(h)
		})
	}
}

// saysDead checks what observers say of a leader that was killed more than a lease ago.
func saysDead(h *home) {
	h.Helper()
	wait.Until(h.T, "the record is old", func() bool { return h.says("status", "--wait", "0").code == 4 })
	h.says("status").must(h.T, 3, `^node-1 is not confirmed: last written \S+ \S+ ago, by its writer's clock; waiting up to 2s for a renewal$`,
		`^record    node-1 held it in term \d+; its lease of 2s has run out$`)
	late := tenureRuns(h.T, h.args("watch")...).start()
	late.says("nobody leads: the record names node-1, last written ")
	late.says(" ago by its clock, and no renewal was seen for its lease of 2s")
	if said := late.out.String(); strings.Contains(said, " leads in term") || !strings.Contains(said, " is not confirmed: last written ") {
		h.Errorf("of a dead leader, watch says\n%s", said)
	}
}
