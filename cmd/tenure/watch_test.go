//go:build integration && unix

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/cmd/internal/test/guardtest"
	"github.com/tenure-go/tenure/cmd/internal/test/must"
	"github.com/tenure-go/tenure/cmd/internal/test/program"
	"github.com/tenure-go/tenure/cmd/internal/test/terminaltest"
	"github.com/tenure-go/tenure/internal/test/wait"
)

func TestWatchReportsEachChange(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	v := tenureRuns(t, h.args("watch", "--json")...).Start()
	v.Says(`"event":"leader"`) // nobody leads
	first := h.join(tenure.Config{ID: "node-1", Address: "10.0.0.1:80"}, nil)
	v.Says(`"leader":"node-1","address":"10.0.0.1:80"`)
	second := h.join(tenure.Config{ID: "node-2"}, nil)
	h.await(second, follows("node-1"))
	h.handsOver("node-2")
	v.Says(`"leader":"node-2"`) // a failover is reported only if the release was seen, too
	first.leave()
	h.put("node-1")
	v.Says(`"event":"alarm"`)
	v.Stops(0)
	for line := range strings.Lines(v.Out.String()) {
		var l struct {
			Time                time.Time
			Event, Election, ID string
		}
		if err := json.Unmarshal([]byte(line), &l); err != nil || l.Time.IsZero() || l.Event == "" || l.Election != "billing" || l.ID == "" {
			t.Errorf("%v in %s", err, line)
		}
	}
}

func TestWatchWritesLinesWithoutATerminal(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.put(record("node-1", 7, time.Minute, time.Now(), ""))
	h.watches("node-1 in term 7 is not confirmed").Must(t, 0, `^Election "billing" in sqlite:\S*elections\.db\. Ctrl-C ends\.$`,
		`^\d\d:\d\d:\d\d\.\d{3}  node-1 in term 7 is not confirmed: last written \d\S* s ago, by its writer's clock$`)
	h.says("watch", "--for", "100ms").Must(t, 0)
	h.says("watch", "--for", "-1s").Must(t, 2, `^error: --for is -1s; it must not be negative$`)
}

// In a terminal there is a live view, unless lines are requested.
func TestWatchOnATerminal(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.put(record("node-1", 7, time.Minute, time.Now(), ""))
	open := func(args ...string) *terminaltest.Window {
		cmd := exec.Command(guardtest.Self(), h.args("watch", args...)...)
		cmd.Env = append(os.Environ(), program.Env, "TERM=xterm-256color")
		return terminaltest.Open(t, cmd, 80, 24)
	}
	w := open()
	w.Await(0, "\x1b[?1049h")
	w.Await(0, "node-1")
	w.Press("q")
	if after, code := w.Restored("node-1 in term 7 is not confirmed"); code != 0 || strings.Count(after, "\n") != 1 {
		t.Errorf("ended with %d and %q", code, after)
	}
	lines := open("--plain")
	lines.Await(0, "node-1 in term 7 is not confirmed")
	if strings.Contains(lines.Output(), "\x1b[?1049h") {
		t.Errorf("got %q", lines.Output())
	}
}

// If the reader is already gone, as with "tenure status | true", the exit code stays and nothing is
// printed.
func TestStatusWithoutAReader(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	for _, c := range []struct {
		leader string
		code   int
	}{{"", 3}, {"node-1", 0}} {
		if c.leader != "" {
			h.put(record(c.leader, 7, time.Hour, time.Now(), ""))
		}
		for _, flags := range [][]string{nil, {"--json"}} {
			out, in, err := os.Pipe()
			must.OK(t, err)
			closeReader(t, out, in)
			w := tenureRuns(t, append(h.args("status"), flags...)...)
			w.Cmd.Stdout = in
			w.Start()
			_ = in.Close()
			w.Ends(c.code)
			if said := w.Errs.String(); said != "" {
				t.Errorf("%v: it says %s", flags, said)
			}
		}
	}
}

// "tenure watch | head -1" ends cleanly at the next line.
func TestWatchEndsWithItsReader(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.put(record("node-1", 7, time.Hour, time.Now(), ""))
	w := tenureRuns(t, h.args("watch", "--json")...)
	out, in, err := os.Pipe()
	must.OK(t, err)
	w.Cmd.Stdout = in
	w.Start()
	ended := make(chan error, 1)
	go func() {
		defer func() { _ = in.Close() }() // ends the lines
		ended <- w.Cmd.Wait()
	}()
	// SIGQUIT prints the stacks of a command that hangs.
	defer context.AfterFunc(wait.Context(t), func() { _ = w.Cmd.Process.Signal(syscall.SIGQUIT) })()
	lines := bufio.NewReader(io.LimitReader(out, 1<<16))
	for line := ""; !strings.Contains(line, "node-1"); { // on a busy machine trouble may come first
		if line, err = lines.ReadString('\n'); err != nil {
			t.Fatalf("%q, %v", line, err)
		}
	}
	closeReader(t, out, in)
	h.put(record("node-2", 9, time.Hour, time.Now(), ""))
	if err := <-ended; err != nil || w.Errs.String() != "" {
		t.Errorf("%v; on standard error:\n%s", err, &w.Errs)
	}
}

// closeReader closes the reading end of a pipe and waits until a write fails. A process that
// another test starts has a copy of that end until it runs its program. A line written during that
// time meets no error, and there may be no later line.
func closeReader(t *testing.T, out, in *os.File) {
	t.Helper()
	must.OK(t, out.Close())
	wait.Until(t, "the pipe has no reader", func() bool {
		_, err := in.WriteString("\n")
		return err != nil
	})
}
