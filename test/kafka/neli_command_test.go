//go:build integration && unix

package kafka

import (
	"bytes"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// lines are the output of a process or a logger.
type lines struct {
	mu  sync.Mutex
	all bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.String()
}

// output returns the output since its last call.
func (l *lines) output() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	defer l.all.Reset()
	return l.all.String()
}

// neliCommand is package neli's command, run as a user runs it.
type neliCommand struct {
	tb  testing.TB
	cmd *exec.Cmd
	lines
}

func buildNeli(t testing.TB) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "neli")
	build := exec.Command("go", "build", "-ldflags=-s -w", "-o", path, "github.com/tenure-go/tenure/compat/neli/cmd/neli")
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

// mustSay waits until the command leads, and returns the token that it printed.
func (n *neliCommand) mustSay() (token uint64) {
	n.tb.Helper()
	all := ""
	eventually(n.tb, "the command leads", func() bool {
		all += n.output()
		_, after, found := strings.Cut(all, "leading, with token ")
		if !found || !strings.Contains(after, "\n") {
			return false
		}
		var err error
		if token, err = strconv.ParseUint(strings.Fields(after)[0], 10, 64); err != nil {
			n.tb.Fatal(err)
		}
		return true
	})
	return token
}

// mustLeadInTheEnd pulses until it leads.
func (p *process) mustLeadInTheEnd() {
	p.t.Helper()
	p.mustLead(left())
}

// end stops it as a service manager does.
func (n *neliCommand) end() {
	n.tb.Helper()
	if err := n.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		n.tb.Fatal(err)
	}
	if err := n.cmd.Wait(); err != nil {
		n.tb.Errorf("the command ends with %v: %s", err, n.output())
	}
}

// TestNeliCommand checks its flags and a graceful end, and that the next one leads then.
func TestNeliCommand(t *testing.T) {
	t.Parallel()
	c := start(t)
	n := runNeli(t, buildNeli(t), c.ListenAddrs()[0], "group", "topic")
	first := n.mustSay()
	b := begin(t, "b", c.ListenAddrs()[0])
	n.end()
	b.mustLeadInTheEnd()
	if b.Token() <= first {
		t.Errorf("tokens %d, then %d", first, b.Token())
	}
	b.mustClose()
	if out, err := exec.Command(n.cmd.Path, "-no-such-flag").CombinedOutput(); err == nil || !bytes.Contains(out, []byte("bootstrap")) {
		t.Errorf("%v: %s", err, out)
	}
}
