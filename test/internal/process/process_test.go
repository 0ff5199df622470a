//go:build integration

package process

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/tenure-go/tenure/internal/test/wait"
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
			fields := state(filepath.Join("/proc", strconv.Itoa(child[0]), "stat"))
			return len(fields) > 0 && fields[0] == "T"
		})
		must(t, p.Kill())
		if p.Runs() || lives(child[0]) || p.EndedEarly() {
			t.Fatal("it is not gone, or gone by itself")
		}
		must(t, p.Kill())
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
}

// TestFind: another process finds a detached one, and ends it.
func TestFind(t *testing.T) {
	p := shell(t, "sleep 1000; true")
	p.Detached, p.PIDFile, p.Mark = true, filepath.Join(p.Dir, "pid"), "sleep 1000"
	must(t, p.Start())
	found := &Process{PIDFile: p.PIDFile, Mark: p.Mark, Family: true}
	if found.Find(); !found.Runs() {
		t.Fatal("it is not found")
	}
	must(t, found.Kill())
	wait.Until(t, "it ends, by itself as far as its parent knows", p.EndedEarly)
}
