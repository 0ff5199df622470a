// Package reign lets candidates elect leaders while a test makes trouble, and judges the leaders.
package reign

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/internal/crew"
	"github.com/tenure-go/tenure/internal/test/wait"
	"github.com/tenure-go/tenure/internal/witness"
	"github.com/tenure-go/tenure/test/internal/asking"
	"github.com/tenure-go/tenure/test/internal/rig"
)

// Reign is one election. Each leader leads until its term ends, and asks all the time whether it
// may act.
type Reign struct {
	testing.TB
	Key string
	// Book has the answers. Processes of their own add theirs.
	Book witness.Book

	way    asking.Way
	all    []*Candidate
	terms  crew.Journal[Term]
	causes crew.Journal[error] // of events
}

// Term is the beginning of a term.
type Term struct {
	*tenure.Term
	By *Candidate
}

// Candidate takes part until it leaves, or the test ends.
type Candidate struct {
	*tenure.Election
	// Way is the network between the candidate and the servers, if there is one.
	Way rig.Way
	// Leave ends Run and waits for its end.
	Leave func()
}

// New returns an election without candidates. At the end of the test no two may have led at once,
// and no token may have been below an earlier one. Leaders that ask in another way than ByTerm are
// not judged.
func New(t testing.TB, key string, way asking.Way) *Reign {
	t.Helper()
	r := &Reign{TB: t, Key: key, way: way}
	t.Cleanup(func() { // when all candidates have left
		v := r.Book.Judge()
		r.Log(v)
		if way == asking.ByTerm && !v.Safe() {
			r.Error(v)
		}
		if v.Acts == 0 && !t.Failed() {
			r.Error("no leader ever acted: this proves nothing")
		}
	})
	return r
}

// Over holds the election once, so that later candidates need not wait for a lease over a key that
// was never written.
func (r *Reign) Over(s driver.Store) {
	r.Helper()
	e, err := tenure.New(s, r.Key, tenure.Config{ID: "first", Lease: max(time.Second, driver.AbilitiesOf(s).MinLease())})
	rig.Must(r, err)
	rig.Must(r, e.Run(wait.Context(r), func(context.Context, *tenure.Term) error { return nil }))
}

// Join adds a candidate.
func (r *Reign) Join(s driver.Store, way rig.Way, cfg tenure.Config) *Candidate {
	r.Helper()
	asker := asking.Start(func(election string, token uint64, stamps []int64) { r.Book.Add(election, cfg.ID, token, stamps...) })
	listens := cfg.OnEvent
	cfg.OnEvent = func(e tenure.Event) {
		asker.Hear(e)
		if listens != nil {
			listens(e)
		}
		if e.Cause != nil {
			r.causes.Add(e.Cause)
		}
	}
	e, err := tenure.New(s, r.Key, cfg)
	rig.Must(r, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	c := &Candidate{Election: e, Way: way}
	r.all = append(r.all, c)
	c.Leave = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			r.Errorf("Run of %s: %v", cfg.ID, err)
		}
		asker.Stop()
	})
	r.Cleanup(c.Leave)
	go func() {
		done <- e.Run(ctx, func(ctx context.Context, t *tenure.Term) error {
			asker.Enter(r.Key, t, r.way)
			r.terms.Add(Term{t, c})
			<-ctx.Done()
			return nil
		})
	}()
	return c
}

// Terms returns the terms so far.
func (r *Reign) Terms() []Term { return r.terms.Since(0) }

// Leader waits for a leader with a token above the given one, and returns the latest.
func (r *Reign) Leader(above uint64) Term {
	r.Helper()
	what := fmt.Sprintf("a leader with a token above %d", above)
	_, err := r.terms.Await(wait.Context(r), 0, what, func(t Term) bool { return t.Token() > above })
	rig.Must(r, err)
	last, _ := r.terms.Last()
	return last
}

// Seen waits until each candidate has seen a term. It is not for candidates that have left.
func (r *Reign) Seen(term uint64) {
	r.Helper()
	for _, c := range r.all {
		wait.Until(r, "the record of a new term", func() bool { return c.Status().Record.Term >= term })
	}
}

// Leads waits until a candidate leads.
func (r *Reign) Leads() {
	r.Helper()
	wait.Until(r, "a leader of "+r.Key, r.Leading)
}

// Leading reports whether a candidate leads.
func (r *Reign) Leading() bool {
	return slices.ContainsFunc(r.Terms(), func(t Term) bool { return t.Err() == nil })
}

// Reported reports whether the cause of an event wraps all of these errors.
func (r *Reign) Reported(wants ...error) bool {
	return slices.ContainsFunc(r.causes.Since(0), func(cause error) bool {
		return !slices.ContainsFunc(wants, func(want error) bool { return !errors.Is(cause, want) })
	})
}
