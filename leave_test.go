package tenure_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver/faults"
	"github.com/tenure-go/tenure/driver/memory"
)

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
