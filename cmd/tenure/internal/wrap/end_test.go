//go:build integration && unix

package wrap

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/cmd/internal/test/guardtest"
	"github.com/tenure-go/tenure/cmd/internal/test/must"
	"github.com/tenure-go/tenure/cmd/tenure/internal/guarded"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/faults"
	"github.com/tenure-go/tenure/internal/test/wait"
)

// unstartable returns files that look executable until the kernel executes them, and the exit code
// for each.
func unstartable(t *testing.T) map[string]struct {
	path string
	code int
} {
	t.Helper()
	dir := guardtest.Dir(t)
	plain := filepath.Join(dir, "plain")
	must.Write(t, plain, "#!/bin/sh\n")
	return map[string]struct {
		path string
		code int
	}{"missing": {filepath.Join(dir, "missing"), guarded.CodeNotFound}, "no right": {plain, guarded.CodeNotRunnable}}
}

// It does not win again at once. It has its turn again when the command exists again, or ends if
// it runs once.
func TestCommandThatCannotBeStartedStepsAside(t *testing.T) {
	t.Parallel()
	for _, why := range []string{"missing", "missing, once", "no right", "no right, once"} {
		t.Run(why, func(t *testing.T) {
			alone(t, func(s *stage) {
				kind, _, once := strings.Cut(why, ", ")
				c := unstartable(t)[kind]
				p := s.wrapper(tenure.Config{Lease: long, Tuning: tenure.Tuning{Backoff: patient.Tuning.Backoff}},
					Options{Path: c.path, Args: []string{"command"}, Once: once})
				p.logs("command not started")
				rival := s.rival(long)
				s.elected()
				if once {
					p.ends(c.code)
					return
				}
				select {
				case <-p.done:
					t.Fatal("the wrapper has ended")
				default:
				}
				must.OK(t, os.WriteFile(c.path+".new", []byte("#!/bin/sh\nexit 3\n"), 0o700))
				must.OK(t, os.Rename(c.path+".new", c.path))
				rival.leave()
				p.ends(3)
			})
		})
	}
}

// restarting is a wrapper whose command ends by itself and is run again.
func (s *stage) restarting(restart Restart, cfg tenure.Config, w guardtest.Worker) *player {
	s.Helper()
	o := s.worker(w)
	o.Restart = restart
	return s.wrapper(cfg, o)
}

func (s *stage) tokens(name string) (all []uint64) {
	for _, n := range s.journal.Notes() {
		if n.Name == name && n.What == "begin" {
			all = append(all, n.Token)
		}
	}
	return all
}

// The next run starts in the same term, with the same token, while another candidate waits in vain.
// It never runs beside processes of the run before.
func TestRestartKeepsLeadership(t *testing.T) {
	t.Parallel()
	for restart, code := range map[Restart]int{RestartOnFailure: 3, RestartAlways: 0} {
		t.Run(string(restart), func(t *testing.T) {
			alone(t, func(s *stage) {
				p := s.restarting(restart, tenure.Config{Lease: long, Tuning: tenure.Tuning{Renew: 200 * ms}}, guardtest.Worker{
					For: 50 * ms, Code: code, Children: []guardtest.Worker{{Name: "child", Deaf: true}},
				})
				p.begins(1)
				s.rival(long)
				p.begins(3)
				if tokens := s.tokens("a"); tokens[0] != tokens[1] || tokens[1] != tokens[2] {
					t.Errorf("the runs have tokens %d", tokens)
				}
				p.wrapper.Hear(syscall.SIGTERM)
				s.elected()
				s.alternate("child")
			})
		})
	}
}

// alternate checks that no process of one run acts after the next run has started.
func (s *stage) alternate(name string) {
	s.Helper()
	begun := map[int]bool{}
	last := 0
	for _, n := range s.journal.Notes() {
		if n.Name != name {
			continue
		}
		if n.PID != last && begun[n.PID] {
			s.Errorf("process %d acts after process %d has begun", n.PID, last)
		}
		begun[n.PID], last = true, n.PID
	}
}

// While no command runs, a signal ends the wrapper, and a hand-over request is granted with a
// release.
func TestPauseBetweenRunsEnds(t *testing.T) {
	t.Parallel()
	for why, end := range map[string]func(p, rival *player){
		"at a signal":    func(p, _ *player) { p.wrapper.Hear(syscall.SIGTERM) },
		"by a hand-over": func(_, rival *player) { rival.handOver("rival") },
	} {
		t.Run(why, func(t *testing.T) {
			alone(t, func(s *stage) {
				p := s.restarting(RestartOnFailure, tenure.Config{Lease: long, Tuning: tenure.Tuning{Renew: 200 * ms}}, guardtest.Worker{For: 50 * ms, Code: 3})
				p.logs("after a pause")
				rival := s.rival(long)
				end(p, rival)
				s.elected()
				rival.leave()
				rival.ended()
				p.wrapper.Hear(syscall.SIGTERM)
				p.ended()
			})
		})
	}
}

// If the lease is lost in a pause, nothing is run in that term.
func TestLossInAPauseBetweenRuns(t *testing.T) {
	alone(t, func(s *stage) {
		p := s.restarting(RestartOnFailure, expiring, guardtest.Worker{For: 50 * ms, Code: 3})
		p.logs("after a pause")
		p.store.Partition()
		s.rival(expiring.Lease)
		s.elected()
	})
}

// Other candidates get their turn when the command fails again and again.
func TestRepeatedlyFailingCommandStepsAside(t *testing.T) {
	alone(t, func(s *stage) {
		p := s.restarting(RestartOnFailure, tenure.Config{Lease: long}, guardtest.Worker{For: 10 * ms, Code: 3})
		p.begins(1)
		s.rival(long)
		s.elected()
		if n := s.journal.Count("a", "begin"); n != mostFailures {
			t.Errorf("it has begun %d times", n)
		}
		p.logs("other candidates get their turn")
	})
}

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

// TestGiveUpReleasesAClaimInFlight: the claim is applied, and its answer does not come. Then no
// other candidate must wait for the lease (L16).
func TestGiveUpReleasesAClaimInFlight(t *testing.T) {
	alone(t, func(s *stage) {
		first := s.rival(long)
		first.await(leads)
		p := s.wrapper(tenure.Config{Lease: long}, s.worker(guardtest.Worker{}))
		p.await(func(st tenure.Status) bool { return st.Leader.ID == "rival" })
		p.store.Next(faults.Write, faults.HangAfter)
		p.store.Next(faults.Push, faults.None, faults.Drop) // the release, and the claim
		first.leave()
		wait.Until(t, "the claim is applied", func() bool {
			e, err := s.store.Read(s.Context(), "e")
			return err == nil && strings.Contains(string(e.Value), `"leaderID":"a"`)
		})
		p.wrapper.GiveUp(errors.New("no time"))
		p.ends(0)
		s.rival(long).await(leads)
		if n, is := s.journal.Find("a", "begin"); is {
			t.Errorf("the command has begun: %+v", n)
		}
	})
}
