//go:build integration && unix

package view_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tenure-go/tenure/cmd/internal/test/guardtest"
	"github.com/tenure-go/tenure/cmd/internal/test/must"
	"github.com/tenure-go/tenure/cmd/internal/test/terminaltest"
	"github.com/tenure-go/tenure/cmd/internal/view"
)

// childEnv makes the test binary a program with a view. Its value selects how the program ends.
const childEnv = "TEST_OF_TENURE_VIEW"

// farewell is the last output of the child.
const farewell = "after the view"

// place fits in a terminal of 80 columns, but not in one of 44.
var place = strings.Repeat("p", 50)

// TestMain runs the tests, or the program under test if the environment variable childEnv is set.
func TestMain(m *testing.M) {
	if how := os.Getenv(childEnv); how != "" {
		err := child(how)
		fmt.Printf("%s: %v\n", farewell, err)
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// child shows one leader and nothing else.
func child(how string) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	facts := make(chan view.Fact, 16)
	s := view.Screen{Title: "test", Place: place, Lease: time.Second, Colour: true}
	facts <- view.Fact{At: time.Now(), What: view.Elected, Who: "c1", Term: 1}
	in := os.Stdin
	switch how {
	case view.PanicUpdate, view.PanicView, view.PanicCmd:
		return view.RunPanicking(ctx, os.Stdin, os.Stdout, s, facts, how)
	case "closed":
		signals := make(chan os.Signal, 1)
		signal.Notify(signals, syscall.SIGUSR1)
		go func() { <-signals; close(facts) }()
	case "no keys":
		in = nil
	}
	return view.Run(ctx, in, os.Stdout, s, facts)
}

func open(t *testing.T, how string) (*terminaltest.Window, *exec.Cmd) {
	t.Helper()
	cmd := exec.Command(guardtest.Self())
	cmd.Env = append(os.Environ(), childEnv+"="+how, "TERM=xterm-256color")
	return terminaltest.Open(t, cmd, 80, 24), cmd
}

func TestEveryExitRestoresTheTerminal(t *testing.T) {
	type window = *terminaltest.Window
	for _, end := range []struct {
		why string
		how string
		do  func(window, *exec.Cmd) error
	}{
		{"the user presses q", "run", func(w window, _ *exec.Cmd) error { w.Press("q"); return nil }},
		{"the user presses Ctrl-C", "run", func(w window, _ *exec.Cmd) error { w.Press("\x03"); return nil }},
		{"a signal ends the context", "run", func(_ window, c *exec.Cmd) error { return c.Process.Signal(syscall.SIGTERM) }},
		{"a signal, without keys", "no keys", func(_ window, c *exec.Cmd) error { return c.Process.Signal(syscall.SIGTERM) }},
		{"there are no more facts", "closed", func(_ window, c *exec.Cmd) error { return c.Process.Signal(syscall.SIGUSR1) }},
	} {
		t.Run(end.why, func(t *testing.T) {
			t.Parallel()
			w, cmd := open(t, end.how)
			w.Await(0, "c1 leads")
			must.OK(t, end.do(w, cmd))
			if after, code := w.Restored(farewell); !strings.HasSuffix(after, farewell+": <nil>\r\n") || code != 0 {
				t.Errorf("ended with %d and %q", code, after)
			}
		})
	}
}

func TestPanicsRestoreTheTerminal(t *testing.T) {
	for _, where := range []string{view.PanicUpdate, view.PanicView, view.PanicCmd} {
		t.Run(where, func(t *testing.T) {
			t.Parallel()
			w, _ := open(t, where)
			w.Await(0, "c1 leads")
			w.Press("p")
			after, _ := w.Restored(farewell)
			wants := []string{farewell + ": the live view: ", "panic", "planted in", "panicking)."}
			if where == view.PanicCmd {
				wants = wants[:2] // this panic is in another goroutine, and may be late
			}
			for _, want := range wants {
				if !strings.Contains(after, want) {
					t.Errorf("the output after the view lacks %q:\n%q", want, after)
				}
			}
		})
	}
}

func TestViewFollowsTheSizeOfTheTerminal(t *testing.T) {
	t.Parallel()
	w, _ := open(t, "run")
	w.Await(0, place+"\x1b")
	seen := len(w.Output())
	w.Resize(44, 12)
	w.Await(seen, "pp…")
	w.Press("q")
	w.Restored(farewell)
}
