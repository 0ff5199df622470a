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

// inRealTime: if it is true, playEverywhere also runs acts in real time. See real_test.go.
var inRealTime = false

// stage is a stage with the services of a test.
type stage struct {
	*testing.T
	*tenuretest.Stage
}

// acts are tests of a stage, each with the property that it shows.
type acts map[string]func(*stage)

// play plays each act within a bubble.
func (all acts) play(t *testing.T) {
	for name, act := range all {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { act(&stage{t, tenuretest.New(t, "billing")}) })
		})
	}
}

// playEverywhere plays each act within a bubble and, with the build tag integration, in real time.
func (all acts) playEverywhere(t *testing.T) {
	all.play(t)
	for name, act := range all {
		if inRealTime {
			t.Run(name+" in real time", func(t *testing.T) {
				t.Parallel()
				act(&stage{t, tenuretest.New(t, "billing")})
			})
		}
	}
}

// service is like a user's service: it leads, and reports the changes.
type service struct {
	began  chan *tenure.Term // a term began
	asked  chan error        // the context of its work ended
	finish chan struct{}     // lets asked work return; closed if it needs no permission
	ended  chan error        // the context of its lease has ended, or its work is done
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
	case <-term.LeaseContext().Done():
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

// service starts a service that needs permission to finish.
func (s *stage) service(id string) *service {
	s.Helper()
	return start(s.T, s.Store(id), s.Config(id))
}

// elect elects a service and returns its term.
func (s *stage) elect(id string, one *service) *tenure.Term {
	s.Helper()
	s.Elect(id)
	return receive(s.T, one.began, "term of "+id)
}

// leads fails the test unless a candidate leads, by a later term than the given one.
func (s *stage) leads(id string, after uint64) {
	s.Helper()
	if l := s.Leader(); l.ID != id || l.Term <= after {
		s.Errorf("%q leads with token %d; want %q, and a token above %d", l.ID, l.Term, id, after)
	}
}

func TestStage(t *testing.T) {
	acts{
		"Elect": func(s *stage) {
			services := map[string]*service{}
			for _, id := range []string{"node-1", "node-2", "node-3"} {
				services[id] = s.service(id).free()
			}
			before := s.Leader()
			for _, id := range []string{"node-2", "node-1", "node-1", "node-3", "node-2"} {
				if before.ID == id {
					s.Elect(id)
					if l := s.Leader(); l.Term != before.Term {
						s.Errorf("electing the leader changed the term from %d to %d", before.Term, l.Term)
					}
					continue
				}
				term := s.elect(id, services[id])
				s.leads(id, before.Term)
				if before = s.Leader(); term.Token() != before.Term || term.Err() != nil {
					s.Errorf("%s: token %d, leader's %d, err %v", id, term.Token(), before.Term, term.Err())
				}
			}
		},
		// A test starts its services and goes on at once. If the one to elect is a little late, no
		// other may be elected in its place.
		"Elect waits for the candidate": func(s *stage) {
			other := s.service("node-2").free()
			store, cfg := s.Store("node-1"), s.Config("node-1")
			late := make(chan *service)
			time.AfterFunc(100*time.Millisecond, func() { late <- start(s.T, store, cfg).free() })
			elected := make(chan struct{})
			go func() {
				s.Elect("node-1")
				close(elected)
			}()
			receive(s.T, receive(s.T, late, "service").began, "term")
			receive(s.T, elected, "end of Elect")
			if len(other.began) > 0 {
				s.Error("another one was elected in between")
			}
		},
		"Ask lets the work finish": func(s *stage) {
			one := s.service("node-1")
			term := s.elect("node-1", one)
			s.Ask()
			if cause := receive(s.T, one.asked, "end of the work's context"); !errors.Is(cause, tenure.ErrHandOver) {
				s.Errorf("asked because %v", cause)
			}
			if err := term.Err(); err != nil || term.LeaseContext().Err() != nil {
				s.Errorf("while the work finishes: %v, %v", err, term.LeaseContext().Err())
			}
			s.leads("node-1", term.Token()-1)
			one.free()
			if err := receive(s.T, one.ended, "end of the work"); err != nil {
				s.Errorf("the term did not last until the work was done: %v", err)
			}
			s.Await(tenuretest.Rival)
			s.elect("node-1", one)
			s.leads("node-1", term.Token())
		},
		"Elect after Ask is for a new term": func(s *stage) {
			one := s.service("node-1")
			term := s.elect("node-1", one)
			s.Ask()
			time.AfterFunc(10*time.Millisecond, func() { one.free() })
			s.Elect("node-1")
			s.leads("node-1", term.Token())
		},
		"Fence ends the term at once": func(s *stage) {
			one := s.service("node-1")
			s.service("node-2").free()
			for round := range 3 {
				term := s.elect("node-1", one)
				s.Fence()
				for what, err := range map[string]error{
					"Err": term.Err(), "Context": context.Cause(term.Context()), "LeaseContext": context.Cause(term.LeaseContext()),
				} {
					if !errors.Is(err, tenure.ErrExpired) {
						s.Errorf("round %d: %s is %v", round, what, err)
					}
				}
				s.leads(tenuretest.Rival, term.Token())
				receive(s.T, one.asked, "end of the work's context")
				receive(s.T, one.ended, "end of the lease's context")
			}
		},
		"Fence during the hand-over": func(s *stage) {
			one := s.service("node-1")
			s.Elect("node-1")
			s.Ask()
			receive(s.T, one.asked, "end of the work's context")
			s.Fence()
			if err := receive(s.T, one.ended, "end of the lease's context"); !errors.Is(err, tenure.ErrExpired) {
				s.Errorf("it ended with %v", err)
			}
		},
		"a leader that is cut is replaced": func(s *stage) {
			short := func(id string) *service {
				cfg := s.Config(id)
				cfg.Lease = 3 * time.Second
				return start(s.T, s.Store(id), cfg).free()
			}
			first, second := short("node-1"), short("node-2")
			term := s.elect("node-1", first)
			s.Cut("node-1")
			if err := term.Err(); err != nil && !inRealTime { // unless a stall has ended it
				s.Errorf("at once: %v", err)
			}
			next := receive(s.T, second.began, "second term")
			s.Await("node-2")
			if err := term.Err(); !errors.Is(err, tenure.ErrExpired) || next.Token() <= term.Token() {
				s.Errorf("token %d after %d, Err is %v", next.Token(), term.Token(), err)
			}
			s.Heal("node-1")
			s.Elect("node-1")
			for again := receive(s.T, first.began, "third term"); again.Token() <= next.Token(); {
				if !inRealTime {
					s.Errorf("token %d after %d", again.Token(), next.Token())
				}
				again = receive(s.T, first.began, "another term") // one was lost to a stall
			}
		},
		"nobody leads when the only service stops": func(s *stage) {
			one := s.service("node-1").free()
			s.Elect("node-1")
			one.stop()
			s.Await("")
			if l := s.Leader(); l.Exists() {
				s.Errorf("%q leads", l.ID)
			}
		},
		"other elections have no rival": func(s *stage) {
			e, err := tenure.New(s.Store("node-1"), "mailing", s.Config("node-1"))
			if err != nil {
				s.Fatal(err)
			}
			term, err := e.Campaign(s.Context())
			if err != nil {
				s.Fatal(err)
			}
			_ = term.Resign(s.Context())
		},
		"its elections campaign": func(s *stage) {
			e := s.Election("node-1")
			won := make(chan *tenure.Term, 1)
			go func() {
				term, _ := e.Campaign(s.Context())
				won <- term
			}()
			s.Elect("node-1")
			term := receive(s.T, won, "term")
			s.Fence()
			if term.Err() == nil {
				s.Error("the term goes on")
			}
			_ = term.Resign(s.Context())
		},
	}.playEverywhere(t)
}

// Nothing happens for a long time.
func TestStageAtRest(t *testing.T) {
	acts{
		"the rival leads at first": func(s *stage) {
			one := s.service("node-1").free()
			select {
			case <-one.began:
				s.Error("the service leads without Elect")
			case <-time.After(time.Hour):
			}
			s.leads(tenuretest.Rival, 0)
		},
		// The rival has a normal lease. A fenced candidate follows it like any other.
		"a fenced candidate does not return by itself": func(s *stage) {
			one := s.service("node-1").free()
			s.elect("node-1", one)
			s.Fence()
			rival := s.Leader()
			select {
			case <-one.began:
				s.Error("it leads again")
			case <-time.After(time.Minute):
			}
			if l := s.Leader(); l.ID != rival.ID || l.Term != rival.Term {
				s.Errorf("%q leads with token %d, no longer the rival with %d", l.ID, l.Term, rival.Term)
			}
		},
		"a short outage costs nothing": func(s *stage) {
			one := s.service("node-1").free()
			term := s.elect("node-1", one)
			s.Cut("node-1")
			s.Heal("node-1")
			select {
			case <-term.LeaseContext().Done():
				s.Errorf("the term ended: %v", context.Cause(term.LeaseContext()))
			case <-time.After(time.Minute):
			}
		},
		"nobody leads when the only service is cut": func(s *stage) {
			s.service("node-1").free()
			s.Elect("node-1")
			s.Cut("node-1")
			s.Await("")
			s.Heal("node-1")
			s.Await("node-1")
		},
	}.play(t)
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
