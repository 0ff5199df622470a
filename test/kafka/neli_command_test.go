//go:build integration && unix

package kafka

import (
	"bytes"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// neliCommand is package neli's command, run as a user runs it.
type neliCommand struct {
	tb  testing.TB
	cmd *exec.Cmd

	mu    sync.Mutex
	lines bytes.Buffer
}

func (n *neliCommand) Write(p []byte) (int, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.lines.Write(p)
}

// said is what it has printed since the last question.
func (n *neliCommand) said() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	defer n.lines.Reset()
	return n.lines.String()
}

func buildNeli(t testing.TB) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "neli")
	build := exec.Command("go", "build", "-ldflags=-s -w", "-o", path, "github.com/tenure-go/tenure/driver/kafkalog/neli/cmd/neli")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return path
}

func runNeli(t testing.TB, path, brokers, group, topic string) *neliCommand {
	t.Helper()
	n := &neliCommand{tb: t, cmd: exec.Command(path, "-kafka", brokers, "-group", group, "-topic", topic)}
	n.cmd.Stdout, n.cmd.Stderr = n, n
	if err := n.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = n.cmd.Process.Kill() })
	return n
}

// mustSay waits until it leads and returns the token that it printed.
func (n *neliCommand) mustSay(within time.Duration) uint64 {
	n.tb.Helper()
	all := ""
	for end := time.Now().Add(within); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		all += n.said()
		if _, after, found := strings.Cut(all, "leading, with token "); found && strings.Contains(after, "\n") {
			token, err := strconv.ParseUint(strings.Fields(after)[0], 10, 64)
			if err != nil {
				n.tb.Fatal(err)
			}
			return token
		}
	}
	n.tb.Fatalf("does not lead within %v: %s", within, all)
	return 0
}

// end asks it to, as a service manager does.
func (n *neliCommand) end() {
	n.tb.Helper()
	if err := n.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		n.tb.Fatal(err)
	}
	if err := n.cmd.Wait(); err != nil {
		n.tb.Errorf("the command ends with %v: %s", err, n.said())
	}
}

func withSignals(t testing.TB) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("there are no such signals")
	}
}

// TestNeliCommand: its flags, an orderly end, and that the next one leads then.
func TestNeliCommand(t *testing.T) {
	t.Parallel()
	withSignals(t)
	c := start(t)
	n := runNeli(t, buildNeli(t), c.ListenAddrs()[0], "group", "topic")
	first := n.mustSay(patience)
	b := begin(t, "b", c.ListenAddrs()[0])
	b.idle(time.Second)
	n.end()
	b.mustLead(patience)
	if b.Token() <= first {
		t.Errorf("tokens %d, then %d", first, b.Token())
	}
	b.mustClose()
	if out, err := exec.Command(n.cmd.Path, "-no-such-flag").CombinedOutput(); err == nil || !bytes.Contains(out, []byte("bootstrap")) {
		t.Errorf("%v: %s", err, out)
	}
}
