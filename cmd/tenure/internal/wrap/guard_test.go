//go:build integration && unix

package wrap

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/cmd/internal/test/guardtest"
	"github.com/tenure-go/tenure/internal/test/wait"
)

// patient has a lease that outlasts a test, and no pause after the death of a guard.
var patient = tenure.Config{Lease: long, Tuning: tenure.Tuning{Backoff: func(int) time.Duration { return 0 }}}

// following starts a wrapper that waits for the end of a rival.
func (s *stage) following(cfg tenure.Config, o Options) (p, rival *player) {
	s.Helper()
	rival = s.rival(long)
	rival.await(leads)
	p = s.wrapper("a", cfg, o)
	p.await(func(st tenure.Status) bool { return st.Leader.ID == "rival" })
	return p, rival
}

func TestDeathOfTheGuardEndsTheTermAndNotTheWrapper(t *testing.T) {
	alone(t, func(s *stage) {
		w := guardtest.Worker{Deaf: true, Children: []guardtest.Worker{{Name: "child", Deaf: true}, {Name: "other", Deaf: true, Apart: reaches}}}
		p := s.leader(patient, w)
		rival := s.rival(long)
		p.killGuard()
		s.elected()
		rival.handOver("a")
		p.begins(2)
	})
}

func TestOnceEndsWithTheGuard(t *testing.T) {
	alone(t, func(s *stage) {
		o := s.worker("a", guardtest.Worker{})
		o.Once = true
		p := s.wrapper("a", patient, o)
		p.begins(1)
		p.killGuard()
		p.ends(CodeLost)
	})
}

// The command was asked to finish, so it is not run again.
func TestDeathOfTheGuardWhileTheCommandFinishes(t *testing.T) {
	alone(t, func(s *stage) {
		p := s.leader(tenure.Config{Lease: long, FinishWithin: long}, guardtest.Worker{Deaf: true})
		p.wrapper.Hear(syscall.SIGTERM)
		s.journal.Await(t, "a", "SIGTERM")
		p.killGuard()
		p.ends(137)
	})
}

// The command has ended. Its guard dies while it waits for the processes left behind. The exit code
// is still that of the command.
func TestDeathOfTheGuardAfterTheCommandHasEnded(t *testing.T) {
	alone(t, func(s *stage) {
		cfg := patient
		cfg.StopWithin = long / 2
		p := s.leader(cfg, guardtest.Worker{For: 1, Code: 4, Children: []guardtest.Worker{{Name: "left", Deaf: true}}})
		s.journal.Await(t, "left", "SIGTERM")
		p.killGuard()
		p.ends(4)
		s.rival(long)
		s.elected()
	})
}

func TestGuardThatDiedBeforeIsReplaced(t *testing.T) {
	alone(t, func(s *stage) {
		p, rival := s.following(patient, s.worker("a", guardtest.Worker{}))
		p.killGuard()
		rival.leave()
		p.begins(1)
	})
}

func TestGuardThatCannotBeStarted(t *testing.T) {
	alone(t, func(s *stage) {
		if w, err := New(Options{Guard: noGuard}); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("got %v %v", w, err)
		}
		o := s.worker("a", guardtest.Worker{})
		guards := []func() *exec.Cmd{guardtest.Guard, noGuard}
		o.Guard = func() *exec.Cmd {
			next := guards[0]
			guards = guards[1:]
			return next()
		}
		p, rival := s.following(patient, o)
		p.killGuard()
		rival.leave()
		if p.ended(); p.code != CodeFailed || !errors.Is(p.err, fs.ErrNotExist) {
			t.Errorf("got %d %v", p.code, p.err)
		}
	})
}

// A guard that hangs is detected before the lease is over, whether or not it accepts the order.
// Then other candidates may lead, and the next term has another guard.
func TestGuardThatDoesNotStartTheCommandIsReplaced(t *testing.T) {
	t.Parallel()
	for why, size := range map[string]int{"a short order": 0, "one that does not fit into the pipe": 100_000} {
		t.Run(why, func(t *testing.T) {
			alone(t, func(s *stage) {
				_ = os.Setenv("LARGE", strings.Repeat("x", size))
				cfg := tenure.Config{Lease: 12 * time.Second, Tuning: tenure.Tuning{Backoff: patient.Tuning.Backoff}}
				p, rival := s.following(cfg, s.worker("a", guardtest.Worker{}))
				old := p.guard()
				p.signalGuard(syscall.SIGSTOP)
				rival.leave()
				p.await(leads)
				term := p.election.Status().Leader.Term
				p.begins(1)
				p.logs("the guard does not answer")
				if p.guard() == old {
					t.Error("by the same guard")
				}
				if begun, _ := s.journal.Find("a", "begin"); begun.Token <= term || s.journal.Count("a", "begin") > 1 {
					t.Errorf("in term %d after term %d, of %d", begun.Token, term, s.journal.Count("a", "begin"))
				}
			})
		})
	}
}

// A guard that ignores its orders is killed with its command, long before its lease would be over.
func TestStoppedGuardDoesNotKeepTheWrapperFromEnding(t *testing.T) {
	t.Parallel()
	for why, finish := range map[string]time.Duration{"at a second signal": long, "when it has had its time": 300 * ms} {
		t.Run(why, func(t *testing.T) {
			alone(t, func(s *stage) {
				p := s.leader(tenure.Config{Lease: long, StopWithin: 400 * ms, FinishWithin: finish}, guardtest.Worker{})
				p.signalGuard(syscall.SIGSTOP)
				p.wrapper.Hear(syscall.SIGTERM)
				if finish == long {
					p.wrapper.Hear(syscall.SIGINT)
				}
				p.ends(137)
			})
		})
	}
}

// timeout(1) signals its child, and then the process group with its child.
func TestSignalThatIsSentTwice(t *testing.T) {
	alone(t, func(s *stage) {
		p := s.leader(tenure.Config{Lease: long, FinishWithin: long}, guardtest.Worker{Finish: 300 * ms})
		p.wrapper.Hear(syscall.SIGTERM)
		p.wrapper.Hear(syscall.SIGTERM)
		p.ends(0)
	})
}

// The kernel continues a stopped guard, also while this candidate renews the lease.
func TestStoppedGuardIsContinued(t *testing.T) {
	if !reaches {
		t.Skip("there is no such timer")
	}
	alone(t, func(s *stage) {
		p := s.leader(expiring, guardtest.Worker{})
		p.signalGuard(syscall.SIGSTOP)
		wait.Succeeds(t, "the guard is continued", func(context.Context) error {
			stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.guard()))
			if err == nil && strings.Contains(string(stat), ") T ") {
				return errors.New("it is stopped")
			}
			return err
		})
		p.wrapper.Hear(syscall.SIGTERM)
		p.ends(0)
	})
}
