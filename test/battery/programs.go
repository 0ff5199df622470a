package main

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"

	"github.com/tenure-go/tenure/test/internal/machine"
)

// The programs are built from here, so that the tests try the present source.
const (
	tenurePackage = "github.com/tenure-go/tenure/cmd/tenure"
	workerPackage = "github.com/tenure-go/tenure/test/battery/internal/worker"
)

// build compiles a command into a directory and returns the binary. The flags are go build's.
// Without symbols for debuggers it takes half of the time.
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
