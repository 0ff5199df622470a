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

// A connection that the other end breaks is no reader of standard output that went away, though the
// system has one signal for both.
func TestBrokenConnectionIsToldAndEndsNoWatch(t *testing.T) {
	t.Parallel()
	s := servers.NATS(t)
	h := homeAt(t, s.ClientURL()+"/ELECTIONS?pristine=true")
	h.put(record("node-1", 7, time.Hour, time.Now(), ""))
	w := tenureRuns(t, h.args("watch", "--json")...).start()
	w.says(`"leader":"node-1"`)
	// has the only connection
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

// A reader that is gone already, as with "tenure status | true", costs neither the exit code nor a
// message.
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
			_ = out.Close()
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

// "tenure watch | head -1" ends in good order when there is something to write.
func TestWatchEndsWithItsReader(t *testing.T) {
	t.Parallel()
	h := natsHome(t)
	h.put(record("node-1", 7, time.Hour, time.Now(), ""))
	cmd := exec.Command(guardtest.Self(), h.args("watch", "--json")...)
	cmd.Env = append(cmd.Environ(), program.Env)
	var errs guardtest.Output
	cmd.Stderr = &errs
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer context.AfterFunc(wait.Context(t), func() { _ = cmd.Process.Kill() })()
	if line, err := bufio.NewReader(io.LimitReader(out, 1<<16)).ReadString('\n'); err != nil || !strings.Contains(line, "node-1") {
		t.Errorf("%q, %v", line, err)
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	h.put(record("node-2", 9, time.Hour, time.Now(), ""))
	if err := cmd.Wait(); err != nil || errs.String() != "" {
		t.Errorf("%v; on standard error:\n%s", err, &errs)
	}
}
