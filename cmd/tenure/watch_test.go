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

	"github.com/nats-io/nats-server/v2/server"
	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/cmd/internal/test/guardtest"
	"github.com/tenure-go/tenure/cmd/internal/test/program"
	"github.com/tenure-go/tenure/cmd/internal/test/servers"
	"github.com/tenure-go/tenure/cmd/internal/test/terminaltest"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/internal/test/wait"
	"github.com/twmb/franz-go/pkg/kfake"
)

// line is one line of --json.
type line struct {
	Time            time.Time
	Event           string
	Election        string
	ID              string
	Term            uint64
	Kind            string
	Leader, Address string
	From, To, By    string
	Millis          float64
	LeastMillis     *float64
}

// vigil is a watch that runs in the background.
type vigil struct {
	*testing.T
	lines chan line
	stop  func()
	ended chan int
}

// watch starts a watch within this process.
func (h *home) watch() *vigil {
	h.Helper()
	ctx, cancel := context.WithCancel(h.Context())
	out, in := io.Pipe()
	v := &vigil{h.T, make(chan line, 1000), cancel, make(chan int, 1)}
	go func() {
		defer close(v.lines)
		scan := bufio.NewScanner(out)
		for scan.Scan() {
			var l line
			if err := json.Unmarshal(scan.Bytes(), &l); err != nil || l.Time.IsZero() || l.Event == "" || l.Election != "billing" || l.ID == "" {
				h.Errorf("%v in %s", err, scan.Text())
			}
			v.lines <- l
		}
	}()
	go func() {
		var errs strings.Builder
		code := execute(ctx, h.args("watch", "--json"), strings.NewReader(""), in, &errs)
		if errs.Len() > 0 {
			h.Errorf("on standard error:\n%s", &errs)
		}
		_ = in.Close()
		v.ended <- code
	}()
	h.Cleanup(cancel)
	return v
}

// renewals waits for this many writes.
func (h *home) renewals(n int) {
	h.Helper()
	last := driver.Version("")
	wait.Until(h.T, "renewals", func() bool {
		if e, err := h.store.Read(h.Context(), "billing"); err == nil && e.Version != last {
			last = e.Version
			n--
		}
		return n < 0
	})
}

// await reads until a line matches.
func (v *vigil) await(what string, is func(line) bool) line {
	v.Helper()
	giveUp := wait.Context(v.T).Done()
	for {
		select {
		case l := <-v.lines:
			if is(l) {
				return l
			}
		case <-giveUp:
			v.Fatalf("no line says: %s", what)
		}
	}
}

func leader(id string) func(line) bool {
	return func(l line) bool { return l.Event == "leader" && l.Leader == id }
}

func isEvent(event string) func(line) bool { return func(l line) bool { return l.Event == event } }

// end stops the watch and checks its exit code.
func (v *vigil) end() {
	v.Helper()
	v.stop()
	if code := <-v.ended; code != 0 {
		v.Errorf("exit code %d", code)
	}
}

func TestWatchReportsEachChange(t *testing.T) {
	t.Parallel()
	h := natsHome(t)
	v := h.watch()
	v.await("nobody leads", leader(""))
	first := h.join(tenure.Config{ID: "node-1", Address: "10.0.0.1:80"}, nil)
	if l := v.await("node-1 leads", leader("node-1")); l.Address != "10.0.0.1:80" || l.Term == 0 {
		t.Errorf("got %+v", l)
	}
	second := h.join(tenure.Config{ID: "node-2"}, nil)
	h.await(second, follows("node-1"))
	h.handsOver("node-2")
	v.await("node-2 leads", leader("node-2"))
	if l := v.await("a failover", func(l line) bool { return l.Event == "failover" && l.Leader == "node-2" }); l.From != "node-1" || l.Millis <= 0 {
		t.Errorf("got %+v", l)
	}
	first.leave()
	h.put("node-1")
	v.await("an alarm", isEvent("alarm"))
	v.end()
}

// A hand-over, one state of the record at a time. A store may skip states that were replaced before
// it pushed them.
func TestWatchReportsAHandOver(t *testing.T) {
	t.Parallel()
	h := natsHome(t)
	v := h.watch()
	v.await("nobody leads", leader(""))
	h.put(record("node-1", 7, time.Hour, time.Now(), ""))
	v.await("node-1 leads", leader("node-1"))
	h.put(record("node-1", 7, time.Hour, time.Now(), `,"request":{"term":7,"to":"node-2","by":"ops"}`))
	if l := v.await("node-1 is asked", isEvent("asked")); l.Leader != "node-1" || l.To != "node-2" || l.By != "ops" {
		t.Errorf("got %+v", l)
	}
	h.put(record("node-1", 7, time.Hour, time.Now(), `,"released":true,"successor":"node-2"`))
	v.await("nobody leads", leader(""))
	h.put(record("node-2", 9, time.Hour, time.Now(), ""))
	if l := v.await("a failover", isEvent("failover")); l.Kind != "graceful" || l.From != "node-1" || l.Leader != "node-2" {
		t.Errorf("got %+v", l)
	}
	v.end()
}

// A leader goes silent, and another follows a lease later. Tests without a real clock check that
// the time counts from the last renewal.
func TestWatchReportsASilentLeader(t *testing.T) {
	t.Parallel()
	h := natsHome(t)
	v := h.watch()
	v.await("nobody leads", leader(""))
	h.put(record("node-1", 7, 2*time.Second, time.Now(), ""))
	v.await("node-1 leads", leader("node-1"))
	v.await("nobody leads", leader(""))
	h.put(record("node-2", 9, 2*time.Second, time.Now(), ""))
	if l := v.await("a failover", isEvent("failover")); l.Kind != "silence" || l.LeastMillis == nil || *l.LeastMillis != 2000 || l.Millis <= 0 {
		t.Errorf("got %+v", l)
	}
	v.end()
}

func TestWatchReportsStoreTrouble(t *testing.T) {
	t.Parallel()
	s := servers.NATS(t)
	h := homeAt(t, s.ClientURL()+"/ELECTIONS?pristine=true")
	v := h.watch()
	v.await("nobody leads", leader(""))
	s.Shutdown()
	v.await("the connection is lost", isEvent("store"))
	v.await("trouble", isEvent("trouble"))
	v.end()
}

func TestWatchWritesLinesWithoutATerminal(t *testing.T) {
	t.Parallel()
	h := natsHome(t)
	h.put(record("node-1", 7, time.Minute, time.Now(), ""))
	h.watches("node-1 in term 7 is not confirmed").must(t, 0, `^Election "billing" in nats://\*\*\*@.*/ELECTIONS\. Ctrl-C ends\.$`,
		`^\d\d:\d\d:\d\d\.\d{3}  node-1 in term 7 is not confirmed: last written \d\S* s ago, by its writer's clock$`)
	h.says("watch", "--for", "100ms").must(t, 0)
	h.says("watch", "--for", "-1s").must(t, 2, `^error: --for is -1s; it must not be negative$`)
}

// Observers do the same on other kinds of stores.
func TestObserversOnObjectStorageAndKafka(t *testing.T) {
	t.Parallel()
	objects := servers.StartObjects(t)
	brokers := servers.Kafka(t, kfake.EnableSASL(), kfake.Superuser("PLAIN", "user", "s3cret"))
	for name, url := range map[string]string{"object storage": objects.URL, "Kafka": "kafka://user:s3cret@" + brokers + "/elections?timeout=20s"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := homeAt(t, url)
			h.says("status").must(t, 3, `^record    there is none$`)
			// Otherwise the first election takes a lease.
			h.put(record("node-0", 1, time.Second, time.Now(), `,"released":true`))
			cfg := tenure.Config{ID: "node-1", Tuning: tenure.Tuning{Renew: 500 * time.Millisecond, Poll: 200 * time.Millisecond, PollStable: time.Second}}
			first := h.join(cfg, nil)
			h.await(first, leads)
			h.says("status", "--json").must(t, 0, `"record":"held","leader":"node-1".*"leaseMillis":600000`)
			cfg.ID = "node-2"
			second := h.join(cfg, nil)
			h.await(second, follows("node-1"))
			h.handsOver("node-2").must(t, 0, `^node-2 leads in term`)
			v := h.watch()
			v.await("node-2 leads", leader("node-2"))
			h.renewals(10)
			v.end()
			for l := range v.lines {
				if l.Event == "leader" || l.Event == "failover" {
					t.Errorf("a leader that goes on, and the watch reports %+v", l)
				}
			}
			h.put("node-1")
			h.says("reset", "--force", "--lease", "2s").must(t, 0, `^was  foreign, 6 bytes: node-1$`)
		})
	}
}

// In a terminal there is a live view, unless lines are requested.
func TestWatchOnATerminal(t *testing.T) {
	t.Parallel()
	h := natsHome(t)
	h.put(record("node-1", 7, time.Minute, time.Now(), ""))
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	open := func(args ...string) *terminaltest.Window {
		cmd := exec.Command(self, h.args("watch", args...)...)
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
	if text := w.Output() + lines.Output(); strings.Contains(lines.Output(), "\x1b[?1049h") || strings.Contains(text, "s3cret") {
		t.Errorf("got %q", text)
	}
}

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
	w.stops(0)
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
