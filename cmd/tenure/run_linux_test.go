//go:build integration

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/tenure-go/tenure/cmd/internal/test/must"
	"github.com/tenure-go/tenure/internal/test/wait"
)

// The first process of a container adopts the orphans of all other processes, for example those of
// a command that was started in the container from outside.
func TestRunAsTheFirstProcessOfAContainer(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("only root can make one")
	}
	w := newHome(t).wrap(nil, "sh", "-c", "echo up $PPID; trap 'exit 3' TERM; while :; do sleep 0.02; done")
	w.Cmd.Args = append([]string{"unshare", "--pid", "--fork", "--mount-proc", "--kill-child"}, w.Cmd.Args...)
	w.Cmd.Path = "/usr/bin/unshare"
	w.Start().Says("up ")
	first := w.child(w.Cmd.Process.Pid)
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
	must.OK(t, syscall.Kill(pid, syscall.SIGTERM))
	w.Ends(3)
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
	h := newHome(t)
	w := h.wrap([]string{"--lease", "1s"}, "sh", "-c", "echo up; exec sleep 1000").Start()
	w.Says("up\n")
	v := tenureRuns(t, h.args("watch")...).Start()
	v.Says("node-1")
	w.stopWithoutGuard()
	v.Says("nobody leads")
	w.Signal(syscall.SIGCONT)
	w.Says("the lease ran out while the guard could not act")
	if strings.Contains(w.Errs.String(), "level=ERROR") {
		t.Errorf("it says\n%s", w.Errs.String())
	}
}

// stopWithoutGuard stops tenure run and kills its guard, so that neither can release the lease.
func (w *wrapped) stopWithoutGuard() {
	w.Helper()
	guard, err := strconv.Atoi(w.child(w.Cmd.Process.Pid))
	must.OK(w, err)
	w.Signal(syscall.SIGSTOP)
	wait.Until(w.T, "all its threads are stopped", func() bool {
		all, err := filepath.Glob("/proc/" + strconv.Itoa(w.Cmd.Process.Pid) + "/task/*/status")
		running := slices.ContainsFunc(all, func(thread string) bool {
			text, _ := os.ReadFile(thread)
			return !strings.Contains(string(text), "State:\tT")
		})
		return err == nil && len(all) > 0 && !running
	})
	must.OK(w, syscall.Kill(guard, syscall.SIGKILL))
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
			w := newHome(t).wrap(c.flags, "true")
			if c.by != "" {
				w.Cmd.Args = append([]string{"sh", "-c", c.by}, w.Cmd.Args...)
				w.Cmd.Path = "/bin/sh"
			}
			w.Start().Ends(0)
			if says := strings.Contains(w.Errs.String(), uncovered); says != c.says {
				t.Errorf("it says\n%s", &w.Errs)
			}
		})
	}
}

func TestIsolatedCommandHasTheTerminal(t *testing.T) {
	t.Parallel()
	for key, code := range map[string]string{"hello\n": "6", ctrlC: "130", ctrlZ + ctrlC: "130"} {
		t.Run(strconv.Quote(key), func(t *testing.T) {
			t.Parallel()
			w := openRun(newHome(t), []string{"--pid-namespace"}, lent+`echo up; read x; echo "command: $x"; exit 6`)
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
	w := newHome(t).wrap([]string{"--pid-namespace"}, "true")
	w.Cmd.Args = append([]string{"unshare", "--mount", "sh", "-c",
		`mount --bind /dev/null /proc/uptime && exec setpriv --bounding-set=-sys_admin "$0" "$@"`}, w.Cmd.Args...)
	w.Cmd.Path = "/usr/bin/unshare"
	w.Start().Ends(125)
	const says = "error: --pid-namespace: start the guard: make a PID namespace: mount its /proc: operation not permitted\nhint: if the system refuses it, allow"
	if got := w.Errs.String(); !strings.Contains(got, says) {
		t.Errorf("it says\n%s", got)
	}
}

// Observers that start late do not say that a leader leads before it renews: neither of one that is
// alive, nor of one whose processes were killed.
func TestObserversThatStartLate(t *testing.T) {
	t.Parallel()
	h := homeAt(t, "sqlite:"+filepath.Join(t.TempDir(), "e.db"))
	w := h.wrap([]string{"--lease", "2s"}, "sh", "-c", "echo up; exec sleep 1000").Start()
	w.Says("up\n")
	alive := tenureRuns(t, h.args("watch")...).Start()
	alive.Says("  node-1 leads in term")
	if said := alive.Out.String(); !strings.Contains(said, "is not confirmed: last written ") || !strings.Contains(said, ", since at least ") {
		t.Errorf("of a leader that is alive, watch says\n%s", said)
	}
	w.stopWithoutGuard()
	w.Signal(syscall.SIGKILL)
	alive.Says("nobody leads: ")
	wait.Until(t, "the record is old", func() bool { return h.says("status", "--wait", "0").Code == 4 })
	h.says("status").Must(t, 3, `^node-1 is not confirmed: last written \S+ \S+ ago, by its writer's clock; waiting up to 2s for a renewal$`,
		`^record    node-1 held it in term \d+; its lease of 2s has run out$`)
	late := tenureRuns(t, h.args("watch")...).Start()
	late.Says("nobody leads: the record names node-1, last written ")
	late.Says(" ago by its clock, and no renewal was seen for its lease of 2s")
	if said := late.Out.String(); strings.Contains(said, " leads in term") || !strings.Contains(said, " is not confirmed: last written ") {
		t.Errorf("of a dead leader, watch says\n%s", said)
	}
}
