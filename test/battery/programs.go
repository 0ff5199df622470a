package main

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"

	"github.com/tenure-go/tenure/test/internal/machine"
)

// The programs are built from this source, so that the battery tests it.
const (
	tenurePackage = "github.com/tenure-go/tenure/cmd/tenure"
	workerPackage = "github.com/tenure-go/tenure/test/battery/internal/worker"
)

// build compiles a command into a directory and returns the path of the binary. The flags are those
// of go build. Symbols for debuggers are left out, which halves the time.
func build(ctx context.Context, dir, name, pkg string, flags ...string) (string, error) {
	binary := filepath.Join(dir, name)
	args := append([]string{"build", "-ldflags=-s -w", "-o", binary}, append(flags, pkg)...)
	cmd := exec.CommandContext(ctx, "go", args...)
	machine.Together(cmd)
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building %s: %w\n%s", name, err, out)
	}
	return binary, nil
}
