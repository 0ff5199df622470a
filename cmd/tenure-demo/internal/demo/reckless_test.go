//go:build integration

package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/cmd/internal/fault"
	"github.com/tenure-go/tenure/cmd/internal/stamp"
	"github.com/tenure-go/tenure/internal/crew"
	"github.com/tenure-go/tenure/internal/test/wait"
)

// recklessEnv makes the test binary a candidate that breaks the rules.
const recklessEnv = "TEST_OF_TENURE_RECKLESS"

// TestMain runs the tests, or a reckless candidate if the environment variable recklessEnv is set.
func TestMain(m *testing.M) {
	time.Local = time.UTC
	if os.Getenv(recklessEnv) != "" {
		if err := reckless(context.Background(), os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// reckless is a candidate that elects itself and acts beside other leaders. The number in its name
// is its term.
func reckless(ctx context.Context, in io.Reader, out io.Writer) error {
	var s spec
	rest, err := crew.Settings(in, &s)
	if err != nil {
		return err
	}
	term, err := strconv.ParseUint(s.ID[1:], 10, 64)
	if err != nil {
		return err
	}
	ctx, cancel := crew.Until(ctx, rest)
	defer cancel()
	r := crew.NewReporter(out)
	(&candidate{spec: s, reports: r}).tell(tenure.Event{Kind: tenure.EventElected, ID: s.ID, Term: term})
	for ; ctx.Err() == nil; time.Sleep(time.Millisecond) {
		r.Send(report{At: stamp.Now(), Act: term})
	}
	return nil
}

func TestDemoFailsLoudlyWhenTwoLead(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	ctx, cancel := context.WithCancel(wait.Context(t))
	defer cancel()
	out := &until{text: "OVERLAP", found: cancel}
	err := Run(ctx, Options{
		Election: "demo", Candidates: 2, Lease: time.Second, Out: out,
		Command: func(string) *exec.Cmd {
			cmd := crew.Self()
			cmd.Env = append(os.Environ(), recklessEnv+"=1")
			return cmd
		},
	})
	var f *fault.Error
	if !errors.As(err, &f) || !strings.Contains(err.Error(), "1 overlap found") || fault.Code(err) != fault.Failed {
		t.Errorf("got %v", err)
	}
	if text := out.all.String(); !strings.Contains(text, "c1 (process ") || !strings.Contains(text, "overlaps found: 1") {
		t.Errorf("not printed:\n%s", text)
	}
}
