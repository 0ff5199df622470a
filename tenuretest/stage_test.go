package tenuretest_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/clock"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/internal/test/wait"
	"github.com/tenure-go/tenure/tenuretest"
)

// inRealTime: if it is true, everywhere also runs tests in real time. See real_test.go.
var inRealTime = false

// everywhere runs a test within a bubble and, with the build tag integration, in real time.
func everywhere(t *testing.T, test func(*testing.T)) {
	if inRealTime {
		t.Parallel()
		t.Run("real", test)
	}
	t.Run("bubble", func(t *testing.T) { synctest.Test(t, test) })
}

// service is like a user's service: it leads, and reports the changes.
type service struct {
	began  chan *tenure.Term // a term began
	asked  chan error        // its soft context ended
	finish chan struct{}     // lets asked work return; closed if it needs no permission
	ended  chan error        // its hard context has ended, or its work is done
	stop   context.CancelFunc
	done   chan error
}

// start runs a service until the test ends.
func start(t *testing.T, store driver.Store, cfg tenure.Config) *service {
	t.Helper()
	e, err := tenure.New(store, "billing", cfg)
	if err != nil {
		t.Fatal(err)
	}
	s := &service{
		began: make(chan *tenure.Term, 9), asked: make(chan error, 9), ended: make(chan error, 9),
		finish: make(chan struct{}), done: make(chan error, 1),
	}
	ctx, stop := context.WithCancel(context.Background())
	s.stop = stop
	go func() { s.done <- e.Run(ctx, s.lead) }()
	t.Cleanup(func() {
		stop()
		if err := <-s.done; err != nil {
			t.Errorf("Run returned %v", err)
		}
	})
	return s
}

func (s *service) lead(ctx context.Context, term *tenure.Term) error {
	s.began <- term
	<-ctx.Done()
	s.asked <- context.Cause(ctx)
	select {
	case <-s.finish:
	case <-term.Context().Done():
	}
	s.ended <- term.Err()
	return nil
}

func (s *service) free() *service {
	close(s.finish)
	return s
}

// receive receives from c, or fails if nothing comes.
func receive[T any](t *testing.T, c <-chan T, what string) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-wait.Context(t).Done():
		t.Fatalf("no %s", what)
		panic("unreachable")
	}
}

func TestRivalLeadsAtFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stage := tenuretest.New(t, "billing")
		s := start(t, stage.Store("node-1"), stage.Config("node-1")).free()
		select {
		case <-s.began:
			t.Error("the service leads without Elect")
		case <-time.After(time.Hour):
		}
		if l := stage.Leader(); l.ID != tenuretest.Rival || l.Term == 0 {
			t.Errorf("leader %+v", l)
		}
	})
}

func TestElect(t *testing.T) {
	everywhere(t, func(t *testing.T) {
		stage := tenuretest.New(t, "billing")
		services := map[string]*service{}
		for _, id := range []string{"node-1", "node-2", "node-3"} {
			services[id] = start(t, stage.Store(id), stage.Config(id)).free()
		}
		token := stage.Leader().Term
		for _, id := range []string{"node-2", "node-1", "node-1", "node-3", "node-2"} {
			before := stage.Leader()
			stage.Elect(id)
			l := stage.Leader()
			if l.ID != id {
				t.Fatalf("%q leads; want %q", l.ID, id)
			}
			if before.ID == id {
				if l.Term != token {
					t.Errorf("electing the leader changed the term from %d to %d", token, l.Term)
				}
				continue
			}
			term := receive(t, services[id].began, "term of "+id)
			if term.Token() != l.Term || l.Term <= token || term.Err() != nil {
				t.Errorf("%s: token %d, leader's %d, before %d, err %v", id, term.Token(), l.Term, token, term.Err())
			}
			token = l.Term
		}
	})
}

// A test starts its services and goes on at once. If the one to elect is a little late, no other
// may be elected in its place.
func TestElectWaitsForTheCandidate(t *testing.T) {
	everywhere(t, func(t *testing.T) {
		stage := tenuretest.New(t, "billing")
		other := start(t, stage.Store("node-2"), stage.Config("node-2")).free()
		store, cfg := stage.Store("node-1"), stage.Config("node-1")
		late := make(chan *service)
		time.AfterFunc(100*time.Millisecond, func() { late <- start(t, store, cfg).free() })
		elected := make(chan struct{})
		go func() {
			stage.Elect("node-1")
			close(elected)
		}()
		receive(t, receive(t, late, "service").began, "term")
		receive(t, elected, "end of Elect")
		if len(other.began) > 0 {
			t.Error("another one was elected in between")
		}
	})
}

func TestAskLetsTheWorkFinish(t *testing.T) {
	everywhere(t, func(t *testing.T) {
		stage := tenuretest.New(t, "billing")
		s := start(t, stage.Store("node-1"), stage.Config("node-1"))
		stage.Elect("node-1")
		term := receive(t, s.began, "term")
		stage.Ask()
		if cause := receive(t, s.asked, "end of the soft context"); !errors.Is(cause, tenure.ErrHandOver) {
			t.Errorf("asked because %v", cause)
		}
		if err := term.Err(); err != nil || term.Context().Err() != nil {
			t.Errorf("while the work finishes: %v, %v", err, term.Context().Err())
		}
		if l := stage.Leader(); l.ID != "node-1" {
			t.Errorf("%q leads before the work has finished", l.ID)
		}
		s.free()
		if err := receive(t, s.ended, "end of the work"); err != nil {
			t.Errorf("the term did not last until the work was done: %v", err)
		}
		stage.Await(tenuretest.Rival)
		stage.Elect("node-1")
		if again := receive(t, s.began, "second term"); again.Token() <= term.Token() {
			t.Errorf("token %d after %d", again.Token(), term.Token())
		}
	})
}

func TestElectAfterAskIsForANewTerm(t *testing.T) {
	everywhere(t, func(t *testing.T) {
		stage := tenuretest.New(t, "billing")
		s := start(t, stage.Store("node-1"), stage.Config("node-1"))
		stage.Elect("node-1")
		term := receive(t, s.began, "term")
		stage.Ask()
		time.AfterFunc(10*time.Millisecond, func() { s.free() })
		stage.Elect("node-1")
		if l := stage.Leader(); l.ID != "node-1" || l.Term <= term.Token() {
			t.Errorf("%q leads with token %d after %d", l.ID, l.Term, term.Token())
		}
	})
}

func TestFenceEndsTheTermAtOnce(t *testing.T) {
	everywhere(t, func(t *testing.T) {
		stage := tenuretest.New(t, "billing")
		s := start(t, stage.Store("node-1"), stage.Config("node-1"))
		start(t, stage.Store("node-2"), stage.Config("node-2")).free()
		for round := range 3 {
			stage.Elect("node-1")
			term := receive(t, s.began, "term")
			stage.Fence()
			if err := term.Err(); !errors.Is(err, tenure.ErrLost) || !errors.Is(err, tenure.ErrExpired) {
				t.Errorf("round %d: Err is %v", round, err)
			}
			for _, ctx := range []context.Context{term.Soft(), term.Context()} {
				if cause := context.Cause(ctx); !errors.Is(cause, tenure.ErrExpired) {
					t.Errorf("round %d: a context ended with %v", round, cause)
				}
			}
			if l := stage.Leader(); l.ID != tenuretest.Rival || l.Term <= term.Token() {
				t.Errorf("round %d: %q leads with token %d after %d", round, l.ID, l.Term, term.Token())
			}
			receive(t, s.asked, "end of the soft context")
			receive(t, s.ended, "end of the hard context")
		}
	})
}

// The rival has a normal lease. A fenced candidate follows it like any other.
func TestFencedCandidateDoesNotReturnByItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stage := tenuretest.New(t, "billing")
		s := start(t, stage.Store("node-1"), stage.Config("node-1")).free()
		stage.Elect("node-1")
		receive(t, s.began, "term")
		stage.Fence()
		rival := stage.Leader()
		select {
		case <-s.began:
			t.Error("it leads again")
		case <-time.After(time.Minute):
		}
		if l := stage.Leader(); l.ID != rival.ID || l.Term != rival.Term {
			t.Errorf("%q leads with token %d, no longer the rival with %d", l.ID, l.Term, rival.Term)
		}
	})
}

func TestFenceDuringTheHandOver(t *testing.T) {
	everywhere(t, func(t *testing.T) {
		stage := tenuretest.New(t, "billing")
		s := start(t, stage.Store("node-1"), stage.Config("node-1"))
		stage.Elect("node-1")
		stage.Ask()
		receive(t, s.asked, "end of the soft context")
		stage.Fence()
		if err := receive(t, s.ended, "end of the hard context"); !errors.Is(err, tenure.ErrExpired) {
			t.Errorf("it ended with %v", err)
		}
	})
}

func TestCutLeaderIsReplaced(t *testing.T) {
	everywhere(t, func(t *testing.T) {
		stage := tenuretest.New(t, "billing")
		short := func(id string) tenure.Config {
			cfg := stage.Config(id)
			cfg.Lease = 3 * time.Second
			return cfg
		}
		first := start(t, stage.Store("node-1"), short("node-1")).free()
		second := start(t, stage.Store("node-2"), short("node-2")).free()
		stage.Elect("node-1")
		term := receive(t, first.began, "first term")
		stage.Cut("node-1")
		if err := term.Err(); err != nil && !inRealTime { // unless a stall has ended it
			t.Errorf("at once: %v", err)
		}
		next := receive(t, second.began, "second term")
		stage.Await("node-2")
		if err := term.Err(); !errors.Is(err, tenure.ErrExpired) || next.Token() <= term.Token() {
			t.Errorf("token %d after %d, Err is %v", next.Token(), term.Token(), err)
		}
		stage.Heal("node-1")
		stage.Elect("node-1")
		for again := receive(t, first.began, "third term"); again.Token() <= next.Token(); {
			if !inRealTime {
				t.Errorf("token %d after %d", again.Token(), next.Token())
			}
			again = receive(t, first.began, "another term") // after a term that was lost to a stall
		}
	})
}

func TestShortOutageCostsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stage := tenuretest.New(t, "billing")
		s := start(t, stage.Store("node-1"), stage.Config("node-1")).free()
		stage.Elect("node-1")
		term := receive(t, s.began, "term")
		stage.Cut("node-1")
		stage.Heal("node-1")
		select {
		case <-term.Context().Done():
			t.Errorf("the term ended: %v", context.Cause(term.Context()))
		case <-time.After(time.Minute):
		}
	})
}

func TestElectionIsVacantWhenTheOnlyServiceStops(t *testing.T) {
	everywhere(t, func(t *testing.T) {
		stage := tenuretest.New(t, "billing")
		s := start(t, stage.Store("node-1"), stage.Config("node-1")).free()
		stage.Elect("node-1")
		s.stop()
		stage.Await("")
		if l := stage.Leader(); l.Exists() {
			t.Errorf("%q leads", l.ID)
		}
	})
}

func TestElectionIsVacantWhenTheOnlyServiceIsCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stage := tenuretest.New(t, "billing")
		start(t, stage.Store("node-1"), stage.Config("node-1")).free()
		stage.Elect("node-1")
		stage.Cut("node-1")
		stage.Await("")
		stage.Heal("node-1")
		stage.Await("node-1")
	})
}

func TestOtherElectionsHaveNoRival(t *testing.T) {
	everywhere(t, func(t *testing.T) {
		stage := tenuretest.New(t, "billing")
		e, err := tenure.New(stage.Store("node-1"), "mailing", stage.Config("node-1"))
		if err != nil {
			t.Fatal(err)
		}
		term, err := e.Campaign(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		_ = term.Resign(t.Context())
	})
}

func TestElectionCampaigns(t *testing.T) {
	everywhere(t, func(t *testing.T) {
		stage := tenuretest.New(t, "billing")
		e := stage.Election("node-1")
		won := make(chan *tenure.Term, 1)
		go func() {
			term, _ := e.Campaign(t.Context())
			won <- term
		}()
		stage.Elect("node-1")
		term := receive(t, won, "term")
		stage.Fence()
		if term.Err() == nil {
			t.Error("the term goes on")
		}
		_ = term.Resign(t.Context())
	})
}

func TestStageLeavesNothing(t *testing.T) {
	before := runtime.NumGoroutine()
	t.Run("stage", func(t *testing.T) {
		stage := tenuretest.New(t, "billing")
		start(t, stage.Store("node-1"), stage.Config("node-1")).free()
		stage.Elect("node-1")
		stage.Fence()
		stage.Elect("node-1")
	})
	wait.Until(t, "the end of the goroutines", func() bool { return runtime.NumGoroutine() <= before })
}

// stopped is a test that records its failure.
type stopped struct {
	*testing.T
	why string
}

func (s *stopped) Fatalf(format string, args ...any) {
	if s.why == "" {
		s.why = fmt.Sprintf(format, args...)
	}
}

func TestMisuseIsNamed(t *testing.T) {
	tests := []struct {
		name string
		do   func(*testing.T, *tenuretest.Stage)
		want string
	}{
		{"no candidate", func(_ *testing.T, s *tenuretest.Stage) { s.Store("node-2"); s.Elect("node-1") },
			`tenuretest: "node-1" is not elected within 2m0s: "rival" leads, ` +
				`"node-1" does not follow the election "billing", "node-2" does not follow the election "billing"`},
		{"the rival is not the test's", func(_ *testing.T, s *tenuretest.Stage) { s.Store(tenuretest.Rival) },
			`tenuretest: "rival" is the stage's own candidate`},
		{"no leader to ask", func(_ *testing.T, s *tenuretest.Stage) { s.Ask() },
			`tenuretest: no candidate of the test's leads within 2m0s: "rival" leads`},
		{"no leader to fence", func(_ *testing.T, s *tenuretest.Stage) { s.Fence() },
			`tenuretest: no candidate of the test's leads within 2m0s: "rival" leads`},
		{"another clock", func(t *testing.T, s *tenuretest.Stage) {
			cfg := s.Config("node-1")
			cfg.Clock = clock.Standard{}
			start(t, s.Store("node-1"), cfg).free()
			s.Elect("node-1")
			s.Fence()
		}, `tenuretest: "node-1" does not use the clock of Config("node-1"), so its lease does not end at once`},
		{"work that does not end", func(t *testing.T, s *tenuretest.Stage) {
			cfg := s.Config("node-1")
			cfg.FinishWithin = time.Hour
			start(t, s.Store("node-1"), cfg)
			start(t, s.Store("node-2"), s.Config("node-2")).free()
			s.Elect("node-1")
			s.Elect("node-2")
		}, `tenuretest: "node-2" is not elected within 2m0s: "node-1" leads`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &stopped{T: t}
				tt.do(t, tenuretest.New(s, "billing"))
				if s.why != tt.want {
					t.Errorf("stopped because %s\nwant %s", s.why, tt.want)
				}
			})
		})
	}
}

func TestUnusableNameStopsTheTest(t *testing.T) {
	s := &stopped{T: t}
	if stage := tenuretest.New(s, ""); stage != nil || s.why == "" {
		t.Error("an election without a name was opened")
	}
}
