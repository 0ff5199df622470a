//go:build integration && unix

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/cmd/internal/test/guardtest"
	"github.com/tenure-go/tenure/cmd/internal/test/must"
	"github.com/tenure-go/tenure/internal/test/wait"
)

// TestRunStepsAside: a candidate leads after its first check has passed, and hands over when its
// checks fail. The lease lasts longer than the test: only a release lets the other one lead.
func TestRunStepsAside(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	fit := filepath.Join(t.TempDir(), "fit")
	w := h.wrap([]string{"--check", "test -e " + fit, "--check-interval", "100ms", "--log-level", "debug"},
		"sh", "-c", "echo up; exec sleep 1000").Start()
	w.Says("a health check failed")
	if r := h.entry(); strings.Contains(string(r.Value), "node-1") {
		t.Errorf("it led before a check passed: %s", r.Value)
	}
	must.Write(t, fit, "")
	w.Says("up\n")
	must.OK(t, os.Remove(fit))
	h.await(h.join(tenure.Config{ID: "node-2"}, nil), leads)
	w.Says("steps aside")
	w.Stops(0)
}

// TestRunKillsACheckThatHangs, with its descendants. The candidate never leads, and says so.
func TestRunKillsACheckThatHangs(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	file := filepath.Join(t.TempDir(), "pid")
	w := h.wrap([]string{"--check", "echo >>" + file + ".all; sleep 1000 & test -s " + file + " || echo $! >" + file + "; wait", "--check-interval", "1s", "--log-level", "debug"},
		"sh", "-c", "echo up").Start()
	w.Says("it was killed: no answer within")
	w.Says("steps aside, and does not lead")
	guardtest.AwaitEndOf(t, file)
	w.Stops(0)
	if strings.Contains(w.Out.String(), "up") {
		t.Error("it led")
	}
}

// TestRunTellsOfChanges: the line of --on-change runs after each change of state, and the last one
// that it gets is the release.
func TestRunTellsOfChanges(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	file := filepath.Join(t.TempDir(), "states")
	w := h.wrap([]string{"--on-change", `echo "$TENURE_ELECTION $TENURE_ID $TENURE_STATE ${TENURE_TOKEN:-none} $TENURE_LEADER" >>` + file},
		"sh", "-c", "echo up; exec sleep 1000").Start()
	w.Says("up\n")
	leads := regexp.MustCompile(`(?m)^billing node-1 leader [1-9][0-9]* node-1$`)
	wait.Succeeds(t, "it tells that it leads", func(context.Context) error {
		if text, _ := os.ReadFile(file); !leads.Match(text) {
			return fmt.Errorf("%s", text)
		}
		return nil
	})
	w.Signal(syscall.SIGTERM)
	w.Result()
	text, err := os.ReadFile(file)
	must.OK(t, err)
	if all := strings.Split(strings.TrimSpace(string(text)), "\n"); !strings.HasPrefix(all[len(all)-1], "billing node-1 released none") {
		t.Errorf("%s", text)
	}
}
