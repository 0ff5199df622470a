//go:build integration && unix

package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/internal/test/wait"
)

// Supervised machines with a command that fails at once take turns. Each waits some seconds between
// its turns.
func TestFailingCommandDoesNotMoveLeadershipConstantly(t *testing.T) {
	t.Parallel()
	h := natsHome(t)
	var all []*wrapped
	begun := time.Now()
	for range 3 {
		all = append(all, h.wrap(nil, "sh", "-c", "echo $TENURE_TOKEN; exit 1").start())
	}
	var tokens []string
	for _, w := range all {
		w.ends(1)
		tokens = append(tokens, w.out.String())
	}
	if took := time.Since(begun); took < 5*time.Second {
		t.Errorf("three of them end within %v", took)
	}
	slices.Sort(tokens)
	if len(slices.Compact(tokens)) != 3 {
		t.Errorf("the tokens are %q", tokens)
	}
	w := h.wrap(nil, "sh", "-c", "exit 1").start()
	w.says("the command ended soon after its start")
	// It released before.
	h.await(h.join(tenure.Config{ID: "node-2", Lease: 10 * time.Minute}, nil), leads)
	w.stops(1)
}

func TestRunRestartsItsCommand(t *testing.T) {
	t.Parallel()
	h := natsHome(t)
	file := filepath.Join(t.TempDir(), "ran")
	w := h.wrap([]string{"--restart", "on-failure"}, "sh", "-c", "echo $TENURE_TOKEN $TENURE_ID; test -e $0 && exit 0; touch $0; exit 7", file).start()
	w.ends(0)
	if runs := strings.Split(strings.TrimSpace(w.out.String()), "\n"); len(runs) != 2 || runs[0] != runs[1] {
		t.Errorf("the runs got %q", runs)
	}
	if n := strings.Count(w.errs.String(), "tenure: elected"); n != 1 {
		t.Errorf("elected %d times:\n%s", n, &w.errs)
	}
}

// The command is deleted after tenure has found it. Other candidates get their turn. So does this
// one when the command exists again.
func TestRunStepsAsideWithoutItsCommand(t *testing.T) {
	t.Parallel()
	h := natsHome(t)
	path := filepath.Join(t.TempDir(), "command")
	put := func() {
		t.Helper()
		if err := os.WriteFile(path+".new", []byte("#!/bin/sh\necho up\nexit 4\n"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(path+".new", path); err != nil {
			t.Fatal(err)
		}
	}
	put()
	other := h.join(tenure.Config{ID: "node-2", Lease: 10 * time.Minute}, nil)
	h.await(other, leads)
	w := h.wrap([]string{"--lease", "2s"}, path).start()
	w.says("leader=node-2")
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	other.leave()
	w.says("other candidates get their turn")
	other = h.join(tenure.Config{ID: "node-3", Lease: 10 * time.Minute}, nil)
	h.await(other, leads)
	put()
	other.leave()
	w.ends(4)
}

// A command that is deleted while its candidate waits is missing in each lease. The log says so
// once.
func TestDeletedCommandIsReportedOnce(t *testing.T) {
	t.Parallel()
	h := natsHome(t)
	job := filepath.Join(t.TempDir(), "job")
	if err := os.WriteFile(job, []byte("#!/bin/sh\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	h.put(record("node-0", 7, 2*time.Second, time.Now(), ""))
	w := tenureRuns(t, h.args("run", "--lease", "500ms", "--", job)...).start()
	w.says("leader=node-0")
	if err := os.Remove(job); err != nil {
		t.Fatal(err)
	}
	said := ""
	wait.Succeeds(t, "four elections", func(context.Context) error {
		if said = w.errs.String(); strings.Count(said, "tenure: elected") < 4 {
			return errors.New(said)
		}
		return nil
	})
	for _, text := range []string{"command not started", "other candidates get their turn"} {
		if n := strings.Count(said, text); n == 0 || n > 1+strings.Count(said, "times=") {
			t.Errorf("%q is said %d times:\n%s", text, n, said)
		}
	}
	_ = w.cmd.Process.Kill() // its exit code depends on whether it leads at that moment
	_ = w.cmd.Wait()
}
