//go:build integration && unix

package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/cmd/internal/test/terminaltest"
	"github.com/tenure-go/tenure/internal/test/wait"
)

// Keys of a terminal.
const (
	ctrlC = "\x03"
	ctrlZ = "\x1a"
)

// lent waits in a script until the terminal is lent to it. Keys that are typed earlier reach
// another program.
const lent = `until [ $(ps -o tpgid= -p $$) -eq $$ ]; do sleep 0.02; done; `

// openRun runs a shell in a terminal. The shell lets "tenure run" run a script, prints its exit
// code, and then reads a line itself.
func openRun(h *home, flags []string, script string) *terminaltest.Window {
	h.Helper()
	w := h.wrap(append([]string{"--log-level", "error"}, flags...), "sh", "-c", script)
	cmd := exec.Command("/bin/sh", append([]string{"-c", `"$0" "$@"; echo "code $?"; read x; echo "shell: $x"`}, w.cmd.Args...)...)
	cmd.Env = w.cmd.Env
	window := terminaltest.Open(h.T, cmd, 80, 24)
	// The window is closed when its last process ends.
	h.Cleanup(func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) })
	return window
}

// ended waits for the exit code of run. After that the shell has the terminal again.
func ended(w *terminaltest.Window, code string) {
	w.Await(0, "code "+code)
	w.Press("back\n")
	w.Await(0, "shell: back")
}

func TestCommandReadsFromTheTerminal(t *testing.T) {
	t.Parallel()
	w := openRun(natsHome(t), nil, `echo up; read x; echo "command: $x"; exit 6`)
	w.Await(0, "up")
	w.Press("hello\n")
	w.Await(0, "command: hello")
	ended(w, "6")
}

func TestCtrlCReachesTheCommandOnce(t *testing.T) {
	t.Parallel()
	w := openRun(natsHome(t), nil, lent+`n=0; trap 'n=$((n+1)); echo "heard $n"' INT; trap 'echo after' USR1; `+
		`echo "run $(ps -o ppid= -p $PPID)"; echo up; while [ $n -lt 2 ]; do sleep 0.02; done; exit 4`)
	_, said := w.Await(0, "run ")
	w.Await(0, "up")
	var run int
	if _, err := fmt.Sscan(said, &run); err != nil {
		t.Fatal(err)
	}
	w.Press(ctrlC)
	w.Await(0, "heard 1")
	// tenure run passes it on, after any signal that it has received before.
	if err := syscall.Kill(run, syscall.SIGUSR1); err != nil {
		t.Fatal(err)
	}
	if before, _ := w.Await(0, "after"); strings.Contains(before, "heard 2") {
		t.Error("it is received twice")
	}
	w.Press(ctrlC)
	ended(w, "4")
}

// up prints "up" once the given programs run as children of the script. A shell that forks loses a
// signal that arrives between fork and exec, so no key may be pressed before.
func up(programs ...string) string {
	wait := "("
	for _, program := range programs {
		wait += "until pgrep -x -P $$ " + program + " >/dev/null; do sleep 0.02; done; "
	}
	return wait + "echo up) & "
}

// A suspended leader could not be resumed.
func TestCtrlZDoesNotSuspendTheCommand(t *testing.T) {
	t.Parallel()
	for why, script := range map[string]string{
		"one process":          "echo up; exec sleep 1000",
		"a shell that waits":   up("sleep") + "sleep 1000; true",
		"a pipe":               up("sleep", "cat") + "sleep 1000 | cat; true",
		"a shell that listens": "trap 'exit 130' INT; echo up; while :; do sleep 0.02; echo on; done",
		"one that handles it":  "trap : TSTP; " + up("sleep") + "sleep 1000; true",
	} {
		t.Run(why, func(t *testing.T) {
			t.Parallel()
			w := openRun(natsHome(t), nil, lent+script)
			w.Await(0, "up")
			w.Press(ctrlZ)
			w.Await(0, "^Z") // the terminal shows the key when it has sent the signal
			if strings.Contains(script, "echo on") {
				w.Await(len(w.Output()), "on")
			}
			w.Press(ctrlC)
			ended(w, "130")
		})
	}
}

// The terminal is lent again in the next term.
func TestCommandOfTheNextTermReadsFromTheTerminal(t *testing.T) {
	t.Parallel()
	h := natsHome(t)
	w := openRun(h, nil, `echo "up $TENURE_TOKEN"; read x; echo "command: $x"; exit 6`)
	w.Await(0, "up ")
	between := h.join(tenure.Config{ID: "node-2"}, nil)
	h.await(between, follows("node-1"))
	h.handsOver("node-2")
	term := h.await(between, leads).Term
	between.leave()
	wait.Succeeds(t, "it runs again", func(context.Context) error {
		said := w.Output()
		var token uint64
		_, _ = fmt.Sscanf(said[strings.LastIndex(said, "up ")+len("up "):], "%d", &token)
		if token <= term {
			return errors.New(said)
		}
		return nil
	})
	w.Press("hello\n")
	w.Await(0, "command: hello")
	ended(w, "6")
}
