//go:build integration && unix

package wrap

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/cmd/tenure/internal/guard/guardtest"
)

func TestOwnExitReleasesAndIsReturned(t *testing.T) {
	alone(t, func(s *stage) {
		p := s.leader(tenure.Config{Lease: long}, guardtest.Worker{For: 100 * ms, Code: 7})
		s.rival(long)
		p.ends(7)
		s.elected()
	})
}

func TestEndByASignalIsReturnedAsAShellWould(t *testing.T) {
	alone(t, func(s *stage) {
		p := s.wrapper("a", tenure.Config{Lease: long}, Options{Path: "/bin/sh", Args: []string{"sh", "-c", "kill -USR1 $$"}})
		p.ends(128 + int(syscall.SIGUSR1))
	})
}

func TestCommandThatCannotBeStartedEndsTheWrapper(t *testing.T) {
	t.Parallel()
	for why, want := range map[string]int{"missing": CodeNotFound, "no right": CodeNotRunnable} {
		t.Run(why, func(t *testing.T) {
			alone(t, func(s *stage) {
				path := filepath.Join(guardtest.Dir(t), "command")
				if want == CodeNotRunnable {
					if err := os.WriteFile(path, []byte("#!/bin/sh\n"), 0o600); err != nil {
						t.Fatal(err)
					}
				}
				p := s.wrapper("a", tenure.Config{Lease: long}, Options{Path: path, Args: []string{"command"}})
				p.ended()
				if p.code != want || p.err != nil {
					t.Errorf("got %d %v, want %d", p.code, p.err, want)
				}
				s.rival(long)
				s.elected()
			})
		})
	}
}

// A command is told by variables, of which there is one each.
func TestCommandIsToldWhoLeads(t *testing.T) {
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
