package tenure_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver/faults"
	"github.com/tenure-go/tenure/driver/memory"
)

// steady is work without a goroutine. Stop sends its context to finished, then returns the next
// result.
type steady struct {
	began    func(context.Context, *tenure.Term) // called when it is elected; may be nil
	finished chan context.Context
	result   chan error
}

func newSteady() *steady {
	return &steady{finished: make(chan context.Context, 10), result: make(chan error, 10)}
}

func (s *steady) Elected(ctx context.Context, term *tenure.Term) error {
	if s.began != nil {
		s.began(ctx, term)
	}
	return nil
}

func (s *steady) Stop(hard context.Context, _ *tenure.Term) error {
	s.finished <- hard
	return <-s.result
}

func TestHandlerStopsBeforeTheRelease(t *testing.T) {
	failure := errors.New("broken work")
	for _, want := range []error{nil, failure} {
		bubbles(t, func(t *testing.T, store operated) {
			ctx, stop := context.WithCancel(t.Context())
			work := newSteady()
			g := mustNewGroup(t, store, "a", nil)
			a := g.election()
			done := g.join(ctx, a, work)
			time.Sleep(time.Second)
			b := start(t, mustNew(t, store, "b", nil), holdOn)
			time.Sleep(5 * lease)
			if s := a.Status(); s.State != tenure.StateLeader || len(work.finished) > 0 || len(done) > 0 {
				t.Fatalf("a is %s, asked to finish %d times, ended %d times, with nothing to end for", s.State, len(work.finished), len(done))
			}
			stop()
			hard := within(t, time.Minute, work.finished, "call of finish")
			time.Sleep(5 * time.Second) // less than FinishWithin
			if hard.Err() != nil || termOf(hard).Err() != nil || len(b.won) > 0 {
				t.Errorf("while the work finishes its context says %v, and b was elected %d times", context.Cause(hard), len(b.won))
			}
			work.result <- want
			if err := within(t, time.Minute, done, "end"); !errors.Is(err, want) || (err == nil) != (want == nil) {
				t.Errorf("it ended with %v, want %v", err, want)
			}
			within(t, time.Second+lease, b.won, "term of b")
		})
	}
}

func TestHandlerThatResignsEndsWithoutStop(t *testing.T) {
	bubbles(t, func(t *testing.T, store operated) {
		terms := make(chan *tenure.Term, 1)
		work := newSteady()
		work.began = func(_ context.Context, term *tenure.Term) { terms <- term }
		g := mustNewGroup(t, store, "a", nil)
		done := g.join(t.Context(), g.election(), work)
		term := within(t, time.Minute, terms, "term")
		time.Sleep(2 * lease)
		if err := term.Resign(t.Context()); err != nil {
			t.Errorf("Resign returned %v", err)
		}
		if err := within(t, time.Minute, done, "end"); err != nil || len(work.finished) > 0 {
			t.Errorf("it ended with %v, and finish was called %d times", err, len(work.finished))
		}
	})
}

func TestHandlerCampaignsAgainAfterAHandOver(t *testing.T) {
	bubbles(t, func(t *testing.T, store operated) {
		var d diary
		ctx, stop := context.WithCancel(t.Context())
		g := mustNewGroup(t, store, "a", func(c *tenure.Config) { c.OnEvent = d.note })
		a := g.election()
		work := newSteady()
		done := g.join(ctx, a, work)
		failure := errors.New("not all was saved")
		work.result <- failure
		work.result <- nil
		if _, err := a.Wait(ctx, func(s tenure.Status) bool { return s.State == tenure.StateLeader }); err != nil {
			t.Fatal(err)
		}
		if err := a.HandOver(ctx, ""); err != nil {
			t.Fatal(err)
		}
		hard := within(t, time.Minute, work.finished, "call of finish")
		if cause := context.Cause(termOf(hard).Soft()); !errors.Is(cause, tenure.ErrHandOver) {
			t.Errorf("asked to finish because of %v", cause)
		}
		s, err := a.Wait(ctx, func(s tenure.Status) bool { return s.Term > termOf(hard).Token() })
		if err != nil || len(done) > 0 {
			t.Fatalf("no other term: %v, %v", s.State, err)
		}
		stop()
		if err := within(t, time.Minute, done, "end"); err != nil {
			t.Errorf("it ended with %v", err)
		}
		if e := d.find(tenure.EventFailed); e == nil || !errors.Is(e.Cause, failure) {
			t.Errorf("the error of finish made the event %v", e)
		}
	})
}

func TestHandlerCampaignsAfterALossOnceStopReturns(t *testing.T) {
	bubbles(t, func(t *testing.T, store operated) {
		ctx, stop := context.WithCancel(t.Context())
		cut := faulty(t, store)
		g := mustNewGroup(t, cut, "a", nil)
		a := g.election()
		work := newSteady()
		done := g.join(ctx, a, work)
		time.Sleep(lease)
		cut.Partition()
		hard := within(t, 2*lease, work.finished, "call of finish")
		if cause := context.Cause(hard); !errors.Is(cause, tenure.ErrExpired) {
			t.Errorf("finish is called with a context that says %v", cause)
		}
		cut.Heal()
		time.Sleep(5 * lease)
		if s := a.Status(); s.State != tenure.StateEnded {
			t.Errorf("a is %s though its work has not stopped", s.State)
		}
		work.result <- nil
		work.result <- nil
		if _, err := a.Wait(ctx, func(s tenure.Status) bool { return s.State == tenure.StateLeader }); err != nil {
			t.Errorf("no other term: %v", err)
		}
		stop()
		if err := within(t, time.Minute, done, "end"); err != nil {
			t.Errorf("it ended with %v", err)
		}
	})
}

func TestHandlerStopMayDecline(t *testing.T) {
	bubbles(t, func(t *testing.T, store operated) {
		ctx, stop := context.WithCancel(t.Context())
		g := mustNewGroup(t, store, "a", func(c *tenure.Config) { c.Tuning.Backoff = func(int) time.Duration { return time.Hour } })
		a := g.election()
		work := newSteady()
		done := g.join(ctx, a, work)
		time.Sleep(lease)
		_ = a.HandOver(ctx, "")
		within(t, time.Minute, work.finished, "call of finish")
		work.result <- tenure.ErrDecline
		time.Sleep(time.Hour - time.Minute)
		if s := a.Status(); s.State != tenure.StateCandidate {
			t.Errorf("a is %s within its back-off", s.State)
		}
		time.Sleep(2 * time.Minute)
		if s := a.Status(); s.State != tenure.StateLeader {
			t.Errorf("a is %s after its back-off", s.State)
		}
		stop()
		work.result <- nil
		if err := within(t, time.Minute, done, "end"); err != nil {
			t.Errorf("it ended with %v", err)
		}
	})
}

func TestOverdueHandlerIsNotReleased(t *testing.T) {
	bubbles(t, func(t *testing.T, store operated) {
		var d diary
		ctx, stop := context.WithCancel(t.Context())
		g := mustNewGroup(t, store, "a", func(c *tenure.Config) { c.FinishWithin, c.OnEvent = time.Second, d.note })
		a := g.election()
		work := newSteady()
		done := g.join(ctx, a, work)
		time.Sleep(lease)
		b := start(t, mustNew(t, store, "b", nil), holdOn)
		time.Sleep(lease)
		stop()
		hard := within(t, time.Minute, work.finished, "call of finish")
		within(t, time.Minute, hard.Done(), "end of the hard context")
		if s := a.Status(); s.State != tenure.StateOverdue || len(b.won) > 0 {
			t.Errorf("a is %s, and b was elected %d times", s.State, len(b.won))
		}
		within(t, 3*lease, b.won, "term of b")
		work.result <- nil
		if err := within(t, time.Minute, done, "end"); err != nil || d.find(tenure.EventOverdue) == nil || d.find(tenure.EventReleased) != nil {
			t.Errorf("it ended with %v; events: %v", err, d.events)
		}
	})
}

func TestHandlerStopsAtOnceIfAskedWhileElected(t *testing.T) {
	bubbles(t, func(t *testing.T, store operated) {
		ctx, stop := context.WithCancel(t.Context())
		work := newSteady()
		work.result <- nil
		work.began = func(soft context.Context, _ *tenure.Term) {
			stop()
			<-soft.Done()
		}
		g := mustNewGroup(t, store, "a", nil)
		done := g.join(ctx, g.election(), work)
		if err := within(t, time.Second, done, "end"); err != nil || len(work.finished) != 1 {
			t.Errorf("it ended with %v, and finish was called %d times", err, len(work.finished))
		}
	})
}

// exiting is work whose Stop ends its goroutine.
type exiting struct{ termCounter }

func (*exiting) Stop(context.Context, *tenure.Term) error { runtime.Goexit(); return nil }

// TestGoexitInStopReleasesNothing: other goroutines of the work may still run.
func TestGoexitInStopReleasesNothing(t *testing.T) {
	bubbles(t, func(t *testing.T, store operated) {
		ctx, stop := context.WithCancel(t.Context())
		g := mustNewGroup(t, store, "a", nil)
		done := g.join(ctx, g.election(), &exiting{})
		time.Sleep(lease)
		stop()
		if err := within(t, time.Minute, done, "end"); !errors.Is(err, tenure.ErrAbandoned) {
			t.Errorf("it ended with %v", err)
		}
		b := start(t, mustNew(t, store, "b", nil), holdOn)
		time.Sleep(lease - time.Second)
		if len(b.won) > 0 {
			t.Error("b leads though nothing was released")
		}
		within(t, 2*lease, b.won, "term of b")
	})
}

// An error that declines with a reason must not be lost. The election goes on, so no function
// returns the error.
func TestReasonForDecliningIsReported(t *testing.T) {
	for why, reported := range map[error]bool{
		tenure.ErrDecline: false,
		fmt.Errorf("%w: not caught up", tenure.ErrDecline): true,
	} {
		synctest.Test(t, func(t *testing.T) {
			var d diary
			a := start(t, mustNew(t, memory.New(), "a", func(c *tenure.Config) { c.OnEvent = d.note }),
				func(context.Context, *tenure.Term) error { return why })
			time.Sleep(10 * time.Second)
			_ = a.end(t)
			if e := d.find(tenure.EventFailed); (e != nil) != reported {
				t.Errorf("%v made the event %v", why, e)
			}
		})
	}
}

// ended fails unless Run ended because of Leave and no further term follows.
func (r *running) ended(t *testing.T) {
	t.Helper()
	if err := within(t, time.Minute, r.done, "end of Run"); err != nil {
		t.Errorf("Run returned %v", err)
	}
	time.Sleep(10 * lease)
	if s := r.election.Status(); s.State != tenure.StateIdle || len(r.won) > 0 {
		t.Errorf("it is %s after it has left, with %d more terms", s.State, len(r.won))
	}
}

func TestLeaveEndsACandidate(t *testing.T) {
	bubbles(t, func(t *testing.T, store operated) {
		a, _ := elect(t, store, "a", nil)
		g := mustNewGroup(t, store, "b", nil)
		b := start(t, g.election(), holdOn)
		time.Sleep(lease)
		g.Leave(b.election)
		b.ended(t)
		c := start(t, b.election, holdOn) // it may campaign again
		time.Sleep(lease)
		_ = a.end(t)
		within(t, time.Minute, c.won, "term of the one that had left")
	})
}

func TestLeaveLetsALeaderFinishAndRelease(t *testing.T) {
	bubbles(t, func(t *testing.T, store operated) {
		var cause error
		g := mustNewGroup(t, store, "a", nil)
		a := start(t, g.election(), func(ctx context.Context, _ *tenure.Term) error {
			<-ctx.Done()
			cause = context.Cause(ctx)
			return nil
		})
		term := within(t, time.Minute, a.won, "term")
		b := start(t, mustNew(t, store, "b", nil), holdOn)
		time.Sleep(lease)
		g.Leave(a.election)
		a.ended(t)
		if !errors.Is(cause, tenure.ErrShutdown) || !errors.Is(term.Err(), tenure.ErrReleased) {
			t.Errorf("it is asked with %v, and the term ended with %v", cause, term.Err())
		}
		within(t, time.Minute, b.won, "term of the next")
	})
}

// The work of a lost term, or work that does not return, stops when it can.
func TestLeaveWhileTheWorkGoesOn(t *testing.T) {
	bubbles(t, func(t *testing.T, store operated) {
		f, finish := faults.New(store, 1, faults.Plan{}), make(chan struct{})
		g := mustNewGroup(t, f, "a", nil)
		a := start(t, g.election(), func(context.Context, *tenure.Term) error {
			<-finish
			return nil
		})
		term := within(t, time.Minute, a.won, "term")
		f.Partition()
		<-term.Context().Done()
		f.Heal()
		g.Leave(a.election)
		synctest.Wait()
		if len(a.done) > 0 {
			t.Error("Run has returned before its work did")
		}
		close(finish)
		a.ended(t)
	})
}

func TestLeaveInABackOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		patient := func(c *tenure.Config) { c.Tuning.Backoff = func(int) time.Duration { return time.Hour } }
		g := mustNewGroup(t, memory.New(), "a", patient)
		a := start(t, g.election(), func(context.Context, *tenure.Term) error { return tenure.ErrDecline })
		within(t, time.Minute, a.won, "term")
		time.Sleep(time.Minute)
		g.Leave(a.election)
		a.ended(t)
	})
}

// Leave affects neither a Campaign nor a Run that begins later.
func TestLeaveAffectsOnlyTheCurrentRun(t *testing.T) {
	bubbles(t, func(t *testing.T, store operated) {
		a, _ := elect(t, store, "a", nil)
		g := mustNewGroup(t, store, "b", nil)
		b := g.election()
		g.Leave(b)
		won := make(chan *tenure.Term, 1)
		go func() {
			term, err := b.Campaign(t.Context())
			if err != nil {
				t.Error(err)
			}
			won <- term
		}()
		time.Sleep(lease)
		g.Leave(b)
		_ = a.end(t)
		term := within(t, time.Minute, won, "term of b")
		g.Leave(b)
		time.Sleep(lease)
		if err := term.Err(); err != nil {
			t.Error(err)
		}
		_ = term.Resign(t.Context())
	})
}
