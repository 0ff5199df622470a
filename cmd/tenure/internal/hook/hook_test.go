package hook

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tenure-go/tenure"
)

// stage has a hook whose calls take a time and are noted.
type stage struct {
	*Hook
	mu      sync.Mutex // of the next fields
	takes   time.Duration
	running int
	seen    []string
	killed  []error
}

func play(t *testing.T, body func(s *stage)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := &stage{}
		s.Hook = New(func(ctx context.Context, now State) error {
			s.mu.Lock()
			if s.running++; s.running > 1 {
				t.Error("two calls at a time")
			}
			defer func() { s.mu.Lock(); s.running--; s.mu.Unlock() }()
			s.seen = append(s.seen, now.ID+" "+string(now.State)+" "+now.Leader)
			takes := s.takes
			s.mu.Unlock()
			select {
			case <-time.After(takes):
				return nil
			case <-ctx.Done():
				s.mu.Lock()
				s.killed = append(s.killed, context.Cause(ctx))
				s.mu.Unlock()
				return ctx.Err()
			}
		}, slog.New(slog.DiscardHandler))
		body(s)
		s.Close()
	})
}

func (s *stage) hear(id string, kind tenure.EventKind) {
	e := tenure.Event{Election: "e", ID: id, Kind: kind, Term: 7}
	if kind == tenure.EventLeader {
		e.Leader.ID = "x"
	}
	s.Hear(e)
}

func (s *stage) saw(t *testing.T, want ...string) {
	t.Helper()
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	if !slices.Equal(s.seen, want) {
		t.Errorf("%q, want %q", s.seen, want)
	}
}

// TestLastStateWins: states that pass while the command runs are left out, those of each candidate
// by themselves.
func TestLastStateWins(t *testing.T) {
	play(t, func(s *stage) {
		s.takes = time.Second
		s.hear("a", tenure.EventCandidate)
		synctest.Wait()
		s.hear("a", tenure.EventElected)
		s.hear("b", tenure.EventCandidate)
		s.hear("a", tenure.EventLeader)
		s.hear("a", tenure.EventLeaving)
		s.saw(t, "a candidate ")
		time.Sleep(3 * time.Second)
		s.saw(t, "a candidate ", "a leaving x", "b candidate ")
	})
}

// TestNoChange: an event that changes no state runs nothing.
func TestNoChange(t *testing.T) {
	play(t, func(s *stage) {
		s.hear("a", tenure.EventTrouble) // before the first state
		s.hear("a", tenure.EventElected)
		s.saw(t, "a leader ")
		s.hear("a", tenure.EventTrouble)
		s.hear("a", tenure.EventElected)
		s.saw(t, "a leader ")
	})
}

// TestCloseGivesTheLastState, and kills a call after the grace time.
func TestCloseGivesTheLastState(t *testing.T) {
	play(t, func(s *stage) {
		s.takes = time.Second
		s.hear("a", tenure.EventElected)
		synctest.Wait()
		s.hear("a", tenure.EventReleased)
		s.Close()
		s.saw(t, "a leader ", "a released ")
	})
	play(t, func(s *stage) {
		s.takes = time.Hour
		s.hear("a", tenure.EventElected)
		synctest.Wait()
		began := time.Now()
		s.Close()
		if took := time.Since(began); took != Grace || len(s.killed) != 1 || !errors.Is(s.killed[0], errClosed) {
			t.Errorf("%v, %v", took, s.killed)
		}
	})
}

// TestCallThatHangs: the next state has its turn after Limit.
func TestCallThatHangs(t *testing.T) {
	play(t, func(s *stage) {
		s.takes = time.Hour
		s.hear("a", tenure.EventElected)
		synctest.Wait()
		s.takes = 0
		s.hear("a", tenure.EventLost)
		time.Sleep(Limit)
		s.saw(t, "a leader ", "a lost ")
	})
}

func TestVariables(t *testing.T) {
	s := State{"e", "a", "leader", 7, "a"}
	want := []string{"TENURE_ELECTION=e", "TENURE_ID=a", "TENURE_STATE=leader", "TENURE_LEADER=a", "TENURE_TOKEN=7"}
	if got := s.Variables(); !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

// TestCloseAlthoughACallNeverEnds: the kernel may be unable to kill a command.
func TestCloseAlthoughACallNeverEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		h := New(func(context.Context, State) error {
			<-release
			return nil
		}, slog.New(slog.DiscardHandler))
		h.Hear(tenure.Event{Election: "e", ID: "a", Kind: tenure.EventElected, Term: 7})
		synctest.Wait()
		began := time.Now()
		h.Close()
		if took := time.Since(began); took != Grace+endWithin {
			t.Errorf("it took %v", took)
		}
		close(release)
	})
}

// TestManyCandidates: those that have been told are forgotten, and none that waits.
func TestManyCandidates(t *testing.T) {
	play(t, func(s *stage) {
		s.mu.Lock()
		s.takes = time.Second
		s.mu.Unlock()
		size := func() (waiting, known int) {
			s.Hook.mu.Lock()
			defer s.Hook.mu.Unlock()
			return len(s.waiting), len(s.known)
		}
		for i := range mostKnown + 10 {
			s.hear(fmt.Sprint(i), tenure.EventElected)
			synctest.Wait() // the first one is given to the command at once
		}
		if waiting, known := size(); waiting != mostKnown+9 || known != waiting {
			t.Errorf("%d wait, %d are known", waiting, known)
		}
		time.Sleep(100 * time.Second)
		synctest.Wait()
		s.hear("last", tenure.EventElected)
		if _, known := size(); known != mostKnown {
			t.Errorf("%d are known", known)
		}
		s.abort(errClosed)
	})
}
