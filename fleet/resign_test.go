package fleet_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/clock"
	"github.com/tenure-go/tenure/driver/memory"
	"github.com/tenure-go/tenure/fleet"
)

// begin runs a fleet of two elections with one member.
func begin(t *testing.T, work tenure.Handler) (f *fleet.Fleet, end func() error) {
	t.Helper()
	f, err := fleet.New(memory.New(), "x", fleet.Config{
		Election: tenure.Config{ID: "a", Lease: lease, Clock: clock.Standard{}}, Elections: []string{"one", "two"},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- f.Run(ctx, work) }()
	return f, func() error {
		cancel()
		return <-done
	}
}

// reporter is work that needs no goroutine, and reports the terms of one election.
type reporter struct {
	election string
	terms    chan<- *tenure.Term
}

func (r reporter) Elected(_ context.Context, term *tenure.Term) error {
	if term.Election() == r.election {
		r.terms <- term
	}
	return nil
}

func (reporter) Stop(context.Context, *tenure.Term) error { return nil }

// TestWorkThatResignsIsElectedAgain: resigning ends a term. The member still takes part in the
// election.
func TestWorkThatResignsIsElectedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		terms := make(chan *tenure.Term, 100)
		_, end := begin(t, reporter{"one", terms})
		first := <-terms
		if err := first.Resign(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		select {
		case next := <-terms:
			if next.Token() <= first.Token() {
				t.Errorf("token %d after %d", next.Token(), first.Token())
			}
		default:
			t.Error("an hour later there is no leader")
		}
		if err := end(); err != nil {
			t.Error(err)
		}
	})
}

// TestListChangesWhileTheFleetEnds: elections that were removed then come back as new ones.
func TestListChangesWhileTheFleetEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, end := begin(t, tenure.Lead(func(ctx context.Context, _ *tenure.Term) error {
			<-ctx.Done()
			time.Sleep(5 * time.Second)
			return nil
		}))
		time.Sleep(2 * time.Minute)
		ended := make(chan error, 1)
		go func() { ended <- end() }()
		time.Sleep(time.Second)
		if err := f.SetElections([]string{"one"}); err != nil {
			t.Error(err)
		}
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if err := f.SetElections([]string{"one", "two"}); err != nil {
			t.Error(err)
		}
	})
}
