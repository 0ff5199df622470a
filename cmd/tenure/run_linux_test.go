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
