//go:build integration && unix

package wrap

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/cmd/internal/test/guardtest"
)

func TestExitOfTheCommandReleasesAndIsReturned(t *testing.T) {
	alone(t, func(s *stage) {
		p := s.leader(tenure.Config{Lease: long}, guardtest.Worker{For: 100 * ms, Code: 7})
		s.rival(long)
		p.ends(7)
		s.elected()
	})
}

func TestEndByASignalIsReturnedAsByAShell(t *testing.T) {
	alone(t, func(s *stage) {
		p := s.wrapper("a", tenure.Config{Lease: long}, Options{Path: "/bin/sh", Args: []string{"sh", "-c", "kill -USR1 $$"}})
		p.ends(128 + int(syscall.SIGUSR1))
	})
}

// unstartable returns files that look executable until the kernel executes them, and the exit code
// for each.
func unstartable(t *testing.T) map[string]struct {
	path string
	code int
} {
	t.Helper()
	dir := guardtest.Dir(t)
	plain := filepath.Join(dir, "plain")
	if err := os.WriteFile(plain, []byte("#!/bin/sh\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return map[string]struct {
		path string
		code int
	}{"missing": {filepath.Join(dir, "missing"), CodeNotFound}, "no right": {plain, CodeNotRunnable}}
}

func TestOnceEndsWithACommandThatCannotBeStarted(t *testing.T) {
	t.Parallel()
	for _, why := range []string{"missing", "no right"} {
		t.Run(why, func(t *testing.T) {
			alone(t, func(s *stage) {
				c := unstartable(t)[why]
				p := s.wrapper("a", tenure.Config{Lease: long}, Options{Path: c.path, Args: []string{"command"}, Once: true})
				p.ends(c.code)
				s.rival(long)
				s.elected()
			})
		})
	}
}

// It does not win again at once. It has its turn again when the command exists again.
func TestCommandThatCannotBeStartedStepsAside(t *testing.T) {
	t.Parallel()
	for _, why := range []string{"missing", "no right"} {
		t.Run(why, func(t *testing.T) {
			alone(t, func(s *stage) {
				c := unstartable(t)[why]
				p := s.wrapper("a", tenure.Config{Lease: long, Tuning: tenure.Tuning{Backoff: patient.Tuning.Backoff}}, Options{Path: c.path, Args: []string{"command"}})
				p.logs("command not started")
				rival := s.rival(long)
				s.elected()
				select {
				case <-p.done:
					t.Fatal("the wrapper has ended")
				default:
				}
				if err := os.WriteFile(c.path+".new", []byte("#!/bin/sh\nexit 3\n"), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.Rename(c.path+".new", c.path); err != nil {
					t.Fatal(err)
				}
				rival.leave()
				p.ends(3)
			})
		})
	}
}

// A command receives each variable once.
func TestCommandReceivesTheVariables(t *testing.T) {
	alone(t, func(s *stage) {
		for _, name := range told {
			t.Setenv(strings.TrimSuffix(name, "="), "from outside")
		}
		t.Setenv("TENURE_IDLE", "stays")
		out, err := os.Create(filepath.Join(guardtest.Dir(t), "env"))
		if err != nil {
			t.Fatal(err)
		}
		old := os.Stdout
		os.Stdout = out
		p := s.wrapper("a", tenure.Config{Lease: long}, Options{Path: "/usr/bin/env", Args: []string{"env"}})
		os.Stdout = old
		p.ends(0)
		got, err := os.ReadFile(out.Name())
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"TENURE_ELECTION=e", "TENURE_ID=a", "TENURE_TOKEN=1", "TENURE_IDLE=stays"} {
			name, _, _ := strings.Cut(want, "=")
			if n := strings.Count("\n"+string(got), "\n"+name+"="); n != 1 || !strings.Contains("\n"+string(got), "\n"+want+"\n") {
				t.Errorf("%s is there %d times, and not only as %s", name, n, want)
			}
		}
	})
}
