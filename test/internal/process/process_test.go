//go:build integration

package process

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tenure-go/tenure/internal/test/wait"
	"github.com/tenure-go/tenure/test/internal/machine"
)

// shell returns a shell that answers when it has a child.
func shell(t *testing.T, script string) *Process {
	p := &Process{Command: []string{"sh", "-c", script}, Dir: t.TempDir(), Log: filepath.Join(t.TempDir(), "log"), Family: true}
	p.Answers = func(context.Context) error {
		if len(children(p.PID())) == 0 {
			return errors.New("it has no child")
		}
		return nil
	}
	t.Cleanup(func() { _ = p.Kill() })
	return p
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestFamily: a kill reaches the children also of a paused process, and a process starts again.
func TestFamily(t *testing.T) {
	p := shell(t, "sleep 1000 & wait")
	for range 3 {
		must(t, p.Start())
		child := children(p.PID())
		if len(child) != 1 {
			t.Fatalf("the children are %v, want one", child)
		}
		must(t, p.Pause())
		wait.Until(t, "the child is paused", func() bool {
			fields := machine.Stat(child[0])
			return len(fields) > 0 && fields[0] == "T"
		})
		must(t, p.Resume())
		must(t, p.Pause())
		must(t, p.Kill())
		if p.Runs() || machine.Lives(child[0]) || p.EndedEarly() {
			t.Fatal("it is not gone, or gone by itself")
		}
		must(t, p.Kill())
	}
}

// TestStopAndKill: a process that is ended by this package has not ended by itself.
func TestStopAndKill(t *testing.T) {
	p := &Process{Command: []string{"sleep", "1000"}, Answers: func(context.Context) error { return nil }}
	for _, end := range []func() error{p.Stop, p.Kill} {
		must(t, p.Start())
		if err := p.Start(); err == nil {
			t.Error("it is started twice")
		}
		must(t, end())
		if p.Runs() || p.EndedEarly() {
			t.Error("it runs, or is gone by itself")
		}
	}
}

// TestEndsInsteadOfAnswering: the error has the output.
func TestEndsInsteadOfAnswering(t *testing.T) {
	p := shell(t, "echo the port is taken >&2; exit 3")
	if err := p.Start(); err == nil || !strings.Contains(err.Error(), "the port is taken") {
		t.Errorf("got %v, want the output", err)
	}
	if !p.EndedEarly() {
		t.Error("it ended by itself")
	}
	if err := p.Pause(); !errors.Is(err, os.ErrProcessDone) {
		t.Errorf("a pause: %v", err)
	}
	must(t, p.Stop())
	if err := p.Wait(); err == nil {
		t.Error("it ended with code 3")
	}
}
