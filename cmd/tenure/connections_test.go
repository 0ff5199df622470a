//go:build integration && unix

package main

import (
	"bufio"
	"context"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/tenure-go/tenure/cmd/internal/test/guardtest"
	"github.com/tenure-go/tenure/cmd/internal/test/program"
	"github.com/tenure-go/tenure/cmd/internal/test/servers"
	"github.com/tenure-go/tenure/internal/test/wait"
)

// If the other end breaks a connection, that must not count as a closed standard output, although
// the system sends one signal for both.
func TestBrokenConnectionIsReportedAndEndsNoWatch(t *testing.T) {
	t.Parallel()
	s := servers.NATS(t)
	h := homeAt(t, s.ClientURL()+"/ELECTIONS?pristine=true")
	h.put(record("node-1", 7, time.Hour, time.Now(), ""))
	w := tenureRuns(t, h.args("watch", "--json")...).start()
	w.says(`"leader":"node-1"`)
	// The server accepts the only connection.
	other := homeAt(t, servers.JetStream(t, &server.Options{MaxConn: 1}).ClientURL()+"/ELECTIONS?pristine=true")
	for range 10 {
		status := tenureRuns(t, "status", "--store", other.url, "--election", "billing", "--connect-timeout", "0s").start()
		status.ends(1)
		if said := status.errs.String(); !strings.HasPrefix(said, "error: --store ") || !strings.Contains(said, "maximum connections exceeded\nhint: ") {
			t.Fatalf("it says %s", said)
		}
	}
	s.Shutdown()
	w.says(`"event":"store"`)
	w.signal(syscall.SIGTERM)
	w.ends(0)
}

// If the reader is already gone, as with "tenure status | true", the exit code stays and nothing is
// printed.
func TestStatusWithoutAReader(t *testing.T) {
	t.Parallel()
	h := natsHome(t)
	for _, c := range []struct {
		leader string
		code   int
	}{{"", 3}, {"node-1", 0}} {
		if c.leader != "" {
			h.put(record(c.leader, 7, time.Hour, time.Now(), ""))
		}
		for _, flags := range [][]string{nil, {"--json"}} {
			out, in, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			closeReader(t, out, in)
			w := tenureRuns(t, append(h.args("status"), flags...)...)
			w.cmd.Stdout = in
			w.start()
			_ = in.Close()
			w.ends(c.code)
			if said := w.errs.String(); said != "" {
				t.Errorf("%v: it says %s", flags, said)
			}
		}
	}
}

// "tenure watch | head -1" ends cleanly at the next line.
func TestWatchEndsWithItsReader(t *testing.T) {
	t.Parallel()
	h := natsHome(t)
	h.put(record("node-1", 7, time.Hour, time.Now(), ""))
	cmd := exec.Command(guardtest.Self(), h.args("watch", "--json")...)
	cmd.Env = append(cmd.Environ(), program.Env)
	var errs guardtest.Output
	cmd.Stderr = &errs
	out, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout = in
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() {
		defer func() { _ = in.Close() }() // ends the lines
		ended <- cmd.Wait()
	}()
	// SIGQUIT prints the stacks of a command that hangs.
	defer context.AfterFunc(wait.Context(t), func() { _ = cmd.Process.Signal(syscall.SIGQUIT) })()
	lines := bufio.NewReader(io.LimitReader(out, 1<<16))
	for line := ""; !strings.Contains(line, "node-1"); { // on a busy machine trouble may come first
		if line, err = lines.ReadString('\n'); err != nil {
			t.Fatalf("%q, %v", line, err)
		}
	}
	closeReader(t, out, in)
	h.put(record("node-2", 9, time.Hour, time.Now(), ""))
	if err := <-ended; err != nil || errs.String() != "" {
		t.Errorf("%v; on standard error:\n%s", err, &errs)
	}
}

// closeReader closes the reading end of a pipe and waits until a write fails. A process that
// another test starts has a copy of that end until it runs its program. A line written during that
// time meets no error, and there may be no later line.
func closeReader(t *testing.T, out, in *os.File) {
	t.Helper()
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	wait.Until(t, "the pipe has no reader", func() bool {
		_, err := in.WriteString("\n")
		return err != nil
	})
}
