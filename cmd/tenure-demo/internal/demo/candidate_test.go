//go:build integration

package demo

import (
	"context"
	"encoding/json"
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
	"github.com/tenure-go/tenure/cmd/internal/stores"
	"github.com/tenure-go/tenure/cmd/internal/stores/natsbucket"
	"github.com/tenure-go/tenure/cmd/internal/test/must"
	"github.com/tenure-go/tenure/internal/crew"
	"github.com/tenure-go/tenure/internal/test/wait"
)

// serves starts the demo's own server.
func serves(t *testing.T, o Options) stores.Place {
	t.Helper()
	place, closes, err := o.serve()
	must.OK(t, err)
	t.Cleanup(closes)
	return place
}

// start runs a candidate in this process until its input ends. The candidate reports to out.
func start(t *testing.T, place stores.Place, out io.Writer) (input io.Closer, ended <-chan error) {
	t.Helper()
	in, feed := io.Pipe()
	done := make(chan error, 1)
	ctx := wait.Context(t)
	go func() { done <- RunCandidate(ctx, in, out) }()
	must.OK(t, json.NewEncoder(feed).Encode(spec{Place: place, Election: "demo", ID: "c1", Lease: time.Minute}))
	return feed, done
}

// waitFor returns a writer and a channel that is closed once the text was written.
func waitFor(text string) (*until, <-chan struct{}) {
	found := make(chan struct{})
	u := &until{text: text}
	u.found = func() {
		u.text = "\x00" // calls found only once
		close(found)
	}
	return u, found
}

func TestCandidateReleasesAndEndsWithItsInput(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	place := serves(t, Options{})
	if s, err := stores.Open(t.Context(), place, stores.Options{Create: true}); err != nil {
		t.Fatal(err)
	} else {
		_ = s.Close()
	}
	out, acted := waitFor(`"act":1`)
	input, ended := start(t, place, out)
	<-acted
	_ = input.Close()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if text := out.all.String(); !strings.Contains(text, `"event":"released"`) {
		t.Errorf("not released:\n%s", text)
	}
}

// A candidate that starts while the server is down reports this and keeps trying.
func TestCandidateWaitsForItsStore(t *testing.T) {
	out, reported := waitFor(`"event":"trouble"`)
	nobody := stores.Place{At: &natsbucket.Place{Servers: []string{"nats://127.0.0.1:1"}, Bucket: Bucket}}
	input, ended := start(t, nobody, out)
	<-reported
	_ = input.Close()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// recklessEnv makes the test binary a candidate that breaks the rules.
const recklessEnv = "TEST_OF_TENURE_RECKLESS"

// TestMain runs the tests, or a reckless candidate if the environment variable recklessEnv is set.
func TestMain(m *testing.M) {
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
