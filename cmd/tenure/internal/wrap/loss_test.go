//go:build integration && unix

package wrap

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/clock"
	"github.com/tenure-go/tenure/cmd/internal/test/guardtest"
	"github.com/tenure-go/tenure/cmd/tenure/internal/guard"
	"github.com/tenure-go/tenure/cmd/tenure/internal/guarded"
	"github.com/tenure-go/tenure/internal/test/wait"
)

func TestCommandIsDeadBeforeAnotherIsElected(t *testing.T) {
	alone(t, func(s *stage) {
		p := s.leader(expiring, guardtest.Worker{Deaf: true})
		rival := s.rival(expiring.Lease)
		p.store.Partition()
		s.elected()
		if asked, begun := s.journal.Count("a", "SIGTERM"), s.journal.Count("a", "begin"); asked > begun {
			t.Errorf("begun %d times, and asked to end %d times", begun, asked)
		}
		first := s.journal.Await(t, "a", "begin")
		p.store.Heal()
		rival.leave()
		p.begins(2)
		last := s.journal.Notes()[len(s.journal.Notes())-1]
		if last.Name != "a" || last.Token <= first.Token {
			t.Errorf("token %d after %d", last.Token, first.Token)
		}
	})
}

// gentle has a lease that is lost during a test, and a long stop time.
var gentle = tenure.Config{Lease: 33 * time.Second, Tuning: tenure.Tuning{Renew: 300 * ms}, StopWithin: 30 * time.Second}

func TestCommandMayShutDownWhenTheLeaseIsLost(t *testing.T) {
	alone(t, func(s *stage) {
		p := s.leader(gentle, guardtest.Worker{Finish: 50 * ms})
		p.store.Partition()
		p.logs("command ended")
		if _, ok := s.journal.Find("a", "end"); !ok {
			t.Error("it has not ended in good order")
		}
		p.store.Heal()
		p.begins(2) // the first end was not the command's own
	})
}

func TestOnceEndsWithTheLeadership(t *testing.T) {
	t.Parallel()
	for why, c := range map[string]struct {
		cfg  tenure.Config
		ends func(s *stage, p *player)
	}{
		"a loss":                 {expiring, func(_ *stage, p *player) { p.store.Partition() }},
		"the death of the guard": {patient, func(_ *stage, p *player) { p.killGuard() }},
		"a hand-over":            {tenure.Config{Lease: long}, func(s *stage, _ *player) { s.rival(long).handOver("") }},
	} {
		t.Run(why, func(t *testing.T) {
			alone(t, func(s *stage) {
				o := s.worker(guardtest.Worker{Finish: 100 * ms})
				o.Once = true
				p := s.wrapper(c.cfg, o)
				p.begins(1)
				c.ends(s, p)
				p.ends(CodeLost)
				if why == "a hand-over" {
					s.elected()
				}
			})
		})
	}
}

// The command has ended by itself, and its other processes are being ended. If the lease is lost in
// this time, that is no reason to run the command again.
func TestLossAfterTheCommandHasEnded(t *testing.T) {
	alone(t, func(s *stage) {
		cfg := tenure.Config{Lease: 40 * time.Second, StopWithin: 30 * time.Second, Tuning: tenure.Tuning{Renew: 200 * ms}}
		p := s.leader(cfg, guardtest.Worker{Code: 9, For: 1, Children: []guardtest.Worker{{Name: "left", Deaf: true}}})
		left := s.journal.Await(t, "left", "SIGTERM")
		p.store.Partition()
		p.logs("tenure: lost")
		if err := syscall.Kill(left.PID, syscall.SIGKILL); err != nil {
			t.Error(err)
		}
		p.ends(9)
		if n := s.journal.Count("a", "begin"); n != 1 {
			t.Errorf("it was run %d times", n)
		}
	})
}

// frozen is a clock that can be stopped, as for a process that gets no time.
type frozen struct {
	clock.Clock
	at atomic.Pointer[clock.Reading]
}

func (f *frozen) Now() clock.Reading {
	if at := f.at.Load(); at != nil {
		return *at
	}
	return f.Clock.Now()
}

func (f *frozen) freeze() { now := f.Clock.Now(); f.at.Store(&now) }
func (f *frozen) thaw()   { f.at.Store(nil) }

// The guard may see the end of the lease before the candidate does. If the command ends then, it
// did not end by itself.
func TestEndRequestedByTheGuardIsNotAnExitOfTheCommand(t *testing.T) {
	t.Parallel()
	for why, once := range map[string]bool{"campaigns again": false, "once": true} {
		t.Run(why, func(t *testing.T) {
			alone(t, func(s *stage) {
				clock := &frozen{Clock: clock.System{}}
				cfg := gentle
				cfg.Clock, cfg.Tuning.Backoff = clock, func(int) time.Duration { return 0 }
				o := s.worker(guardtest.Worker{Code: 3})
				o.Once = once
				p := s.wrapper(cfg, o)
				p.begins(1)
				clock.freeze()
				p.logs("command ended")
				if _, ok := s.journal.Find("a", "end"); !ok {
					t.Error("it has not ended in good order")
				}
				if once {
					wait.Until(t, "its end", func() bool { return p.wrapper.Context().Err() != nil })
				} else {
					wait.Until(t, "the end of the term", func() bool { return !leads(p.election.Status()) })
				}
				clock.thaw()
				if once {
					p.ends(CodeLost)
				} else {
					p.begins(2)
				}
			})
		})
	}
}

// patient has a lease that outlasts a test, and no pause after the death of a guard.
var patient = tenure.Config{Lease: long, Tuning: tenure.Tuning{Backoff: func(int) time.Duration { return 0 }}}

// following starts a wrapper that waits for the end of a rival.
func (s *stage) following(cfg tenure.Config, o Options) (p, rival *player) {
	s.Helper()
	rival = s.rival(long)
	rival.await(leads)
	p = s.wrapper(cfg, o)
	p.await(func(st tenure.Status) bool { return st.Leader.ID == "rival" })
	return p, rival
}

func TestDeathOfTheGuardEndsTheTermAndNotTheWrapper(t *testing.T) {
	alone(t, func(s *stage) {
		w := guardtest.Worker{Deaf: true, Children: []guardtest.Worker{{Name: "child", Deaf: true}, {Name: "other", Deaf: true, Apart: guard.FindsOrphans}}}
		p := s.leader(patient, w)
		rival := s.rival(long)
		p.killGuard()
		s.elected()
		rival.handOver("a")
		p.begins(2)
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
		p, rival := s.following(patient, s.worker(guardtest.Worker{}))
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
		o := s.worker(guardtest.Worker{})
		guards := []func() *exec.Cmd{guardtest.Guard, noGuard}
		o.Guard = func() *exec.Cmd {
			next := guards[0]
			guards = guards[1:]
			return next()
		}
		p, rival := s.following(patient, o)
		p.killGuard()
		rival.leave()
		if p.ended(); p.code != guarded.CodeFailed || !errors.Is(p.err, fs.ErrNotExist) {
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
				p, rival := s.following(cfg, s.worker(guardtest.Worker{}))
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
