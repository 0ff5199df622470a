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
	"github.com/tenure-go/tenure/cmd/internal/test/must"
	"github.com/tenure-go/tenure/cmd/internal/test/terminaltest"
	"github.com/tenure-go/tenure/internal/test/wait"
)

// Keys of a terminal.
const (
	ctrlC = "\x03"
	ctrlZ = "\x1a"
)

// lent makes a script ask for the terminal, and wait until it is lent. Keys that are typed earlier
// reach another program.
const lent = `stty echo; `

// openRun runs a shell in a terminal. The shell lets "tenure run" run a script, prints its exit
// code, and then reads a line itself.
func openRun(h *home, flags []string, script string) *terminaltest.Window {
	h.Helper()
	return openIn(h, flags, script, `"$0" "$@"; code $?`)
}

// openIn is openRun with another script of the shell. It finds the command line of "tenure run" in
// its arguments.
func openIn(h *home, flags []string, script, shell string) *terminaltest.Window {
	h.Helper()
	w := h.wrap(append([]string{"--log-level", "error"}, flags...), "sh", "-c", script)
	// The shell must not end by Ctrl-C, and must not make the others ignore it. A Ctrl-C that comes
	// late must neither interrupt its output nor make the terminal discard output.
	shell = `stty noflsh; trap : INT QUIT; code() { trap "" INT QUIT; echo "code $1"; }; ` + shell + `; read x; echo "shell: $x"`
	cmd := exec.Command("/bin/bash", append([]string{"-c", shell}, w.Cmd.Args...)...)
	cmd.Env = w.Cmd.Env
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

// killable are ways to run a command that does not use the terminal, so that Ctrl-C reaches tenure.
var killable = map[string]struct{ script, shell string }{
	"ignores it":       {script: `trap "" INT; echo READY; exec sleep 1000`},
	"goes on after it": {script: `trap "echo heard" INT; echo READY; while :; do sleep 0.02; done`},
	"in a pipeline":    {script: `trap "" INT PIPE; echo READY >&2; exec sleep 1000`, shell: `"$0" "$@" | cat; code ${PIPESTATUS[0]}`},
	"reads a file":     {script: `trap "" INT; cat; echo READY; exec sleep 1000`, shell: `"$0" "$@" </dev/null; code $?`},
	"was in the background": {script: `trap "" INT; echo READY; exec sleep 1000`,
		shell: `set -m; "$0" "$@" & fg >/dev/null; code $?`},
}

// The first Ctrl-C asks the command to finish.
func TestSecondCtrlCKills(t *testing.T) {
	t.Parallel()
	for why, c := range killable {
		t.Run(why, func(t *testing.T) {
			t.Parallel()
			killedBySecondCtrlC(t, nil, c.script, c.shell)
		})
	}
}

func killedBySecondCtrlC(t *testing.T, flags []string, script, shell string) {
	t.Helper()
	if shell == "" {
		shell = `"$0" "$@"; code $?`
	}
	flags = append([]string{"--log-level", "info", "--finish-within", "1h"}, flags...)
	w := openIn(newHome(t), flags, script, shell)
	w.Await(0, "READY")
	w.Press(ctrlC)
	w.Await(0, "asked to finish")
	wait.Succeeds(t, "it is killed", func(context.Context) error {
		w.Press(ctrlC) // within 0.3 s of the first, it is the same signal
		if said := w.Output(); !strings.Contains(said, "code=137") {
			return errors.New(said)
		}
		return nil
	})
	ended(w, "137")
}

// The other process of a pipeline keeps the terminal. less, for example, reads the keys.
func TestPipelineKeepsTheTerminal(t *testing.T) {
	t.Parallel()
	w := openIn(newHome(t), nil, `echo up; exec sleep 1000`,
		`"$0" "$@" | { read x; read y </dev/tty; echo "$x, reader: $y"; }; code ${PIPESTATUS[0]}`)
	w.Press("hello\n")
	w.Await(0, "up, reader: hello")
	w.Press(ctrlC)
	ended(w, "130")
}

// A command that uses the terminal gets Ctrl-C as if tenure were not there.
func TestCtrlCReachesTheCommandOnce(t *testing.T) {
	t.Parallel()
	w := openRun(newHome(t), nil, lent+`n=0; trap 'n=$((n+1)); echo "heard $n"' INT; trap 'echo after' USR1; `+
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
	must.OK(t, syscall.Kill(run, syscall.SIGUSR1))
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
		for whose, first := range map[string]string{"": "", ", with the terminal": lent} {
			t.Run(why+whose, func(t *testing.T) {
				t.Parallel()
				w := openRun(newHome(t), nil, first+script)
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
}

// The terminal is lent again in the next term.
func TestCommandOfTheNextTermReadsFromTheTerminal(t *testing.T) {
	t.Parallel()
	h := newHome(t)
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
