package main

import (
	"context"
	"io"
	"testing"
	"time"

	"github.com/tenure-go/tenure/admin"
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

func TestFresh(t *testing.T) {
	now := time.Now()
	for _, c := range []struct {
		why   string
		r     admin.Record
		fresh bool
	}{
		{"renewed a moment ago", admin.Record{Lease: time.Second, Updated: now.Add(-900 * time.Millisecond)}, true},
		{"a clock that is ahead", admin.Record{Lease: time.Second, Updated: now.Add(900 * time.Millisecond)}, true},
		{"a lease ago", admin.Record{Lease: time.Second, Updated: now.Add(-time.Second)}, false},
		{"far ahead", admin.Record{Lease: time.Second, Updated: now.Add(time.Second)}, false},
		{"never", admin.Record{Lease: time.Second}, false},
	} {
		if fresh(c.r, now) != c.fresh {
			t.Error(c.why)
		}
	}
}
