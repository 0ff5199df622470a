// Package command builds and starts the command for tests.
package command

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/tenure-go/tenure/internal/crew"
)

// Build builds the tenure command and returns its path.
func Build(t testing.TB) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "tenure")
	build := exec.Command("go", "build", "-ldflags=-s -w", "-o", path, "github.com/tenure-go/tenure/cmd/tenure")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return path
}

// Process is a program that runs until the test ends.
type Process struct {
	*crew.Process
	t   testing.TB
	log string // a file
}

// Start starts a program. If the test fails, the program's output is logged.
func Start(t testing.TB, program string, args ...string) *Process {
	t.Helper()
	file, err := os.CreateTemp(t.TempDir(), "log")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, args...)
	cmd.Stdout, cmd.Stderr = file, file
	started, err := crew.Start(cmd)
	if err != nil {
		t.Fatal(err)
	}
	p := &Process{started, t, file.Name()}
	t.Cleanup(func() {
		p.Kill()
		_ = file.Close()
		if t.Failed() {
			t.Logf("%s says\n%s", program, p.Says())
		}
	})
	return p
}

// Kill ends the program at once, if it has not ended, and waits for its end.
func (p *Process) Kill() {
	_ = p.Process.Kill()
	_ = p.Wait()
}

// Says returns the program's output so far.
func (p *Process) Says() string {
	p.t.Helper()
	text, err := os.ReadFile(p.log)
	if err != nil {
		p.t.Fatal(err)
	}
	return string(text)
}
