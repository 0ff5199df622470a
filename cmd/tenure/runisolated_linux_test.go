//go:build integration

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/tenure-go/tenure/internal/test/wait"
)

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
