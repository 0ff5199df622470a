//go:build integration && unix

package wrap

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/cmd/internal/test/guardtest"
	"github.com/tenure-go/tenure/cmd/internal/test/must"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/internal/test/wait"
)

func (p *player) handOver(to string) {
	p.Helper()
	must.OK(p, p.election.HandOver(wait.Context(p.T), to))
}

// The lease is renewed while the command finishes, however long that takes.
func TestHandOverWaitsForTheCommand(t *testing.T) {
	alone(t, func(s *stage) {
		finish, said := filepath.Join(guardtest.Dir(t), "finish"), filepath.Join(guardtest.Dir(t), "said")
		const script = `exec >>"$1"; trap 'echo heard; until [ -e "$0" ]; do sleep 0.02; done; echo finished; exit 0' TERM; echo up; while :; do sleep 0.02; done`
		cfg := patient
		cfg.Tuning.Renew, cfg.FinishWithin = 200*ms, long
		s.wrapper(cfg, Options{Path: "/bin/sh", Args: []string{"sh", "-c", script, finish, said}})
		awaitFile(t, said, "up\n")
		rival := s.rival(long)
		rival.handOver("rival")
		awaitFile(t, said, "up\nheard\n")
		s.renewed(3)
		must.OK(t, os.WriteFile(finish, nil, 0o600))
		s.elected()
		awaitFile(t, said, "up\nheard\nfinished\n") // asked once, and awaited
		rival.handOver("a")
		awaitFile(t, said, "up\nheard\nfinished\nup\n")
	})
}

// awaitFile waits until a file holds a text.
func awaitFile(t *testing.T, path, want string) {
	t.Helper()
	wait.Succeeds(t, path, func(context.Context) error {
		if got, _ := os.ReadFile(path); string(got) != want {
			return fmt.Errorf("it holds %q, want %q", got, want)
		}
		return nil
	})
}

// renewed waits for this many writes.
func (s *stage) renewed(times int) {
	s.Helper()
	var last driver.Version
	wait.Until(s.T, "renewals", func() bool {
		if e, err := s.store.Read(s.Context(), "e"); err == nil && e.Version != last {
			last = e.Version
			times--
		}
		return times < 0
	})
}

func TestFirstSignalIsPassedOnAndTheCommandAwaited(t *testing.T) {
	t.Parallel()
	for name, signal := range map[string]syscall.Signal{"SIGTERM": syscall.SIGTERM, "SIGINT": syscall.SIGINT} {
		t.Run(name, func(t *testing.T) {
			alone(t, func(s *stage) {
				p := s.leader(tenure.Config{Lease: long}, guardtest.Worker{
					Finish: 300 * ms, Code: 5, Children: []guardtest.Worker{{Name: "child", Finish: 300 * ms}},
				})
				s.rival(long)
				p.wrapper.Hear(signal)
				p.ends(5)
				s.elected()
				for _, who := range []string{"a", "child"} {
					if _, ok := s.journal.Find(who, name); !ok {
						t.Errorf("%s has not received it", who)
					}
				}
				if _, ok := s.journal.Find("a", "end"); !ok {
					t.Error("it was not waited for")
				}
			})
		})
	}
}

// The running command receives two of them.
func TestSignalsArePassedOn(t *testing.T) {
	alone(t, func(s *stage) {
		p := s.leader(tenure.Config{Lease: long}, guardtest.Worker{Children: []guardtest.Worker{{Name: "child"}}})
		for name, signal := range map[string]syscall.Signal{
			"SIGHUP": syscall.SIGHUP, "SIGQUIT": syscall.SIGQUIT, "SIGUSR1": syscall.SIGUSR1, "SIGUSR2": syscall.SIGUSR2, "SIGWINCH": syscall.SIGWINCH,
		} {
			p.wrapper.Hear(signal)
			s.journal.Await(t, "a", name)
			if _, is := s.journal.Find("child", name); is {
				t.Errorf("the child received %s, which is for the command alone", name)
			}
		}
		if p.wrapper.Context().Err() != nil {
			t.Error("the wrapper ends")
		}
	})
}

func TestSignalEndsAWrapperAfterItsCommandHasEnded(t *testing.T) {
	alone(t, func(s *stage) {
		p := s.leader(tenure.Config{Lease: long}, guardtest.Worker{})
		s.rival(long).handOver("rival")
		p.await(func(st tenure.Status) bool { return st.Leader.ID == "rival" })
		p.wrapper.Hear(syscall.SIGHUP)
		p.ends(0)
	})
}

// A signal may come when leadership is won and the command has not started. Then the command need
// not start.
func TestSignalBeforeTheCommandHasBegun(t *testing.T) {
	alone(t, func(s *stage) {
		rival := s.rival(long)
		rival.await(leads)
		p := s.wrapper(tenure.Config{Lease: long}, s.worker(guardtest.Worker{}))
		p.await(func(st tenure.Status) bool { return st.Leader.ID == "rival" })
		p.signalGuard(syscall.SIGSTOP)
		rival.leave()
		p.await(leads)
		p.wrapper.Hear(syscall.SIGTERM)
		p.logs("asked to finish")
		p.signalGuard(syscall.SIGCONT)
		p.ends(0)
		if n, is := s.journal.Find("a", "begin"); is {
			t.Errorf("it has begun: %+v", n)
		}
	})
}
