//go:build integration && unix

package main

import (
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/tenure-go/tenure/cmd/internal/test/guardtest"
	"github.com/tenure-go/tenure/cmd/internal/test/must"
	"github.com/tenure-go/tenure/cmd/internal/test/program"
	"github.com/tenure-go/tenure/cmd/internal/test/terminaltest"
)

// openDemo runs "tenure-demo" in a terminal.
func openDemo(t *testing.T, env []string, args ...string) (*terminaltest.Window, *exec.Cmd) {
	t.Helper()
	cmd := exec.Command(guardtest.Self(), append([]string{"--lease", "1s"}, args...)...)
	cmd.Env = append(append(os.Environ(), program.Env, "TERM=xterm-256color", "TMPDIR="+t.TempDir(), "NO_COLOR="), env...)
	return terminaltest.Open(t, cmd, 80, 24), cmd
}

const lastWords = "overlaps found: 0"

// closing checks the last lines of a demo.
func closing(t *testing.T, after string, code int) {
	t.Helper()
	if code != 0 || !strings.Contains(after, " elections, terms ") && !strings.Contains(after, " election, term ") ||
		!strings.Contains(after, "Acts checked: ") {
		t.Errorf("ended with %d and %q", code, after)
	}
}

func TestDemoOnATerminal(t *testing.T) {
	t.Parallel()
	w, _ := openDemo(t, nil, "--crash-every", "1500ms")
	w.Await(0, "\x1b[?1049h")
	w.Await(0, " leads")
	w.Await(0, "→") // a failover
	seen := len(w.Output())
	w.Resize(50, 14)
	w.Await(seen, "…") // the place is cut
	w.Await(seen, "failover")
	w.Press("q")
	after, code := w.Restored(lastWords)
	closing(t, after, code)
	before, _ := w.Await(0, "\x1b[?1049h")
	if !strings.Contains(before, "look in:") {
		t.Errorf("before the view: %q", before)
	}
}

func TestSignalEndsTheDemoOnATerminal(t *testing.T) {
	t.Parallel()
	w, cmd := openDemo(t, []string{"NO_COLOR=1"}, "--crash-every", "0", "--candidates", "2")
	w.Await(0, "█")
	must.OK(t, cmd.Process.Signal(syscall.SIGTERM))
	after, code := w.Restored(lastWords)
	closing(t, after, code)
	if text := w.Output(); strings.Contains(text, "\x1b[1m") || strings.Contains(text, "\x1b[2m") || strings.Contains(text, "\x1b[36m") {
		t.Errorf("NO_COLOR is not honoured:\n%q", text)
	}
}

// With --plain, or in a terminal that cannot be overwritten, the demo prints lines.
func TestDemoPrintsPlainLinesOnATerminal(t *testing.T) {
	for why, c := range map[string]struct {
		env  []string
		args []string
	}{
		"TERM is dumb": {[]string{"TERM=dumb"}, nil},
		"--plain":      {nil, []string{"--plain"}},
		"a variable":   {[]string{"TENURE_PLAIN=true"}, nil},
		"--verbose":    {nil, []string{"--verbose"}},
	} {
		t.Run(why, func(t *testing.T) {
			t.Parallel()
			w, cmd := openDemo(t, c.env, append(c.args, "--candidates", "2", "--crash-every", "0")...)
			w.Await(0, "elected")
			must.OK(t, cmd.Process.Signal(os.Interrupt))
			before, _ := w.Await(0, lastWords)
			if strings.Contains(before, "\x1b[?") || !strings.Contains(before, "process") {
				t.Errorf("got %q", before)
			}
		})
	}
}
