// Package command builds and starts the command for tests.
package command

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/tenure-go/tenure/internal/crew"
	"github.com/tenure-go/tenure/internal/test/wait"
)

// Tenure is the package of the tenure command.
const Tenure = "github.com/tenure-go/tenure/cmd/tenure"

// Build builds the tenure command and returns its path.
func Build(t testing.TB) string {
	t.Helper()
	binary, err := BuildIn(t.Context(), t.TempDir(), Tenure)
	if err != nil {
		t.Fatal(err)
	}
	return binary
}

// BuildIn builds a command of this source into a directory and returns the path of the binary. The
// flags are those of go build. Symbols for debuggers are left out, which halves the time.
func BuildIn(ctx context.Context, dir, pkg string, flags ...string) (binary string, err error) {
	return BuildFrom(ctx, "", dir, pkg, flags...)
}

// BuildFrom is BuildIn for the source in another directory.
func BuildFrom(ctx context.Context, source, dir, pkg string, flags ...string) (binary string, err error) {
	binary = filepath.Join(dir, path.Base(pkg))
	args := append([]string{"build", "-ldflags=-s -w", "-o", binary}, append(flags, pkg)...)
	build := exec.CommandContext(ctx, "go", args...)
	build.Dir = source
	crew.Separate(build)
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building %s: %w\n%s", pkg, err, out)
	}
	return binary, nil
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

// Await waits until the program's output matches, and returns the first group of the expression.
func (p *Process) Await(expression string) (found string) {
	p.t.Helper()
	wanted := regexp.MustCompile(expression)
	wait.Until(p.t, "the program says "+expression, func() bool {
		match := wanted.FindStringSubmatch(p.Says())
		if match != nil {
			found = match[1]
		}
		return match != nil
	})
	return found
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
