package main

import (
	"context"
	"io"
	"testing"

	"github.com/tenure-go/tenure/cmd/internal/cli"
	"github.com/tenure-go/tenure/cmd/internal/test/program"
)

func TestMain(m *testing.M) { program.Main(m, main) }

// The scripts hold whole command lines with their complete output.
func TestScripts(t *testing.T) { program.Scripts(t, "tenure", "testdata/script") }

// execute runs a command within this process, and returns the exit code.
func execute(ctx context.Context, args []string, in io.Reader, out, errs io.Writer) int {
	return cli.Execute(ctx, newRoot(), args, in, out, errs)
}
