//go:build unix

package wrap

import (
	"strings"
	"syscall"
	"testing"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/cmd/tenure/internal/guard/guardtest"
)

func (p *player) handOver(to string) {
	p.Helper()
	if err := p.election.HandOver(p.Context(), to); err != nil { // nobody leads: a short lease was lost
		guardtest.TooLate(p.T, "%v", err)
	}
}

// The lease is renewed while the command finishes, however long that takes.
func TestHandOverWaitsForTheCommand(t *testing.T) {
	alone(t, func(s *stage) {
		p := s.leader(short, guardtest.Worker{Finish: 1600 * ms})
		rival := s.rival(short.Lease)
		rival.handOver("rival")
		s.elected()
		if n := s.journal.Count("a", "SIGTERM"); n != 1 { // if the lease is lost it is asked once more
			guardtest.TooLate(t, "it was asked %d times", n)
		}
		if _, ok := s.journal.Find("a", "end"); !ok {
			guardtest.TooLate(t, "it was not waited for")
		}
		rival.handOver("a")
		p.begins(2)
	})
}

func TestOnceEndsWithAHandOver(t *testing.T) {
	alone(t, func(s *stage) {
		o := s.worker("a", guardtest.Worker{Finish: 100 * ms})
		o.Once = true
		p := s.wrapper("a", tenure.Config{Lease: long}, o)
		p.begins(1)
		s.rival(long).handOver("")
		p.ends(CodeLost)
		s.elected()
	})
}

func TestFirstSignalIsPassedOnAndTheCommandWaitedFor(t *testing.T) {
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
						t.Errorf("%s has not heard it", who)
					}
				}
				if _, ok := s.journal.Find("a", "end"); !ok {
					t.Error("it was not waited for")
				}
			})
		})
	}
}

func TestSecondSignalKillsAtOnce(t *testing.T) {
	alone(t, func(s *stage) {
		p := s.leader(tenure.Config{Lease: long, FinishWithin: long}, guardtest.Worker{Deaf: true})
		s.rival(long)
		p.wrapper.Hear(syscall.SIGTERM)
		s.journal.Await(t, "a", "SIGTERM")
		p.wrapper.Hear(syscall.SIGINT)
		p.wrapper.Hear(syscall.SIGINT)
		p.ends(137)
		s.elected()
		if p.hasLostItsGuard() {
			guardtest.TooLate(t, "its guard did not kill it")
		}
		if _, is := s.journal.Find("a", "SIGINT"); is {
			t.Error("the second was passed on")
		}
	})
}

func TestCommandThatDoesNotFinishIsKilled(t *testing.T) {
	alone(t, func(s *stage) {
		p := s.leader(tenure.Config{Lease: long, StopWithin: 400 * ms, FinishWithin: 300 * ms}, guardtest.Worker{Deaf: true})
		s.rival(long)
		s.journal.Add("rival", "asks")
		p.wrapper.Hear(syscall.SIGTERM)
		p.ends(137)
		s.elected()
		if got := s.journal.Last("a", "").Sub(s.journal.Last("rival", "asks")); got < 450*ms {
			guardtest.TooLate(t, "it was killed after %v", got)
		}
	})
}

// Two of them are for whoever is there.
func TestSignalsArePassedOn(t *testing.T) {
	alone(t, func(s *stage) {
		p := s.leader(tenure.Config{Lease: long}, guardtest.Worker{Children: []guardtest.Worker{{Name: "child"}}})
		for name, signal := range map[string]syscall.Signal{
			"SIGHUP": syscall.SIGHUP, "SIGQUIT": syscall.SIGQUIT, "SIGUSR1": syscall.SIGUSR1, "SIGUSR2": syscall.SIGUSR2, "SIGWINCH": syscall.SIGWINCH,
		} {
			p.wrapper.Hear(signal)
			s.journal.Await(t, "a", name)
			if _, is := s.journal.Find("child", name); is {
				t.Errorf("the child has heard %s, which is for the command alone", name)
			}
		}
		if p.wrapper.Context().Err() != nil {
			t.Error("the wrapper ends")
		}
	})
}

func TestSignalsEndAWrapperWithoutACommand(t *testing.T) {
	t.Parallel()
	for name, signal := range map[string]syscall.Signal{
		"SIGTERM": syscall.SIGTERM, "SIGINT": syscall.SIGINT, "SIGHUP": syscall.SIGHUP, "SIGQUIT": syscall.SIGQUIT,
	} {
		t.Run(name, func(t *testing.T) {
			alone(t, func(s *stage) {
				s.rival(long).await(leads)
				p := s.wrapper("a", tenure.Config{Lease: long}, s.worker("a", guardtest.Worker{}))
				p.await(func(st tenure.Status) bool { return st.Leader.ID == "rival" })
				p.wrapper.Hear(syscall.SIGUSR1) // for nobody
				if p.wrapper.Context().Err() != nil {
					t.Error("it ends")
				}
				p.wrapper.Hear(signal)
				p.ends(0)
			})
		})
	}
}

func TestSignalEndsAWrapperThatHasNoCommandAnyMore(t *testing.T) {
	alone(t, func(s *stage) {
		p := s.leader(tenure.Config{Lease: long}, guardtest.Worker{})
		s.rival(long).handOver("rival")
		p.await(func(st tenure.Status) bool { return st.Leader.ID == "rival" })
		p.wrapper.Hear(syscall.SIGHUP)
		p.ends(0)
	})
}

// A signal may come when leadership is won and the command has not begun. Then it need not.
func TestSignalBeforeTheCommandHasBegun(t *testing.T) {
	alone(t, func(s *stage) {
		rival := s.rival(long)
		rival.await(leads)
		p := s.wrapper("a", tenure.Config{Lease: long}, s.worker("a", guardtest.Worker{}))
		p.await(func(st tenure.Status) bool { return st.Leader.ID == "rival" })
		p.signalGuard(syscall.SIGSTOP)
		rival.leave()
		p.await(leads)
		p.wrapper.Hear(syscall.SIGTERM)
		guardtest.Eventually(t, func() bool { return strings.Contains(p.log.String(), "asked to finish") }, func() string { return "it is not asked" })
		p.signalGuard(syscall.SIGCONT)
		p.ends(0)
		if n, is := s.journal.Find("a", "begin"); is {
			t.Errorf("it has begun: %+v", n)
		}
	})
}
