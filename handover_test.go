package tenure_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/tenure-go/tenure"
)

// A leader that is leaving for another reason takes note of the successor, named in its own process
// or through the store; and the last request counts.
func TestHandOverNamesTheSuccessorOfOneWhoLeavesAnyway(t *testing.T) {
	leave := map[string]func(*running){
		"shut down":    func(a *running) { a.stop() },
		"not eligible": func(a *running) { a.election.SetEligible(false) },
	}
	wish := map[string]func(a, b *running) *tenure.Election{
		"by itself": func(a, _ *running) *tenure.Election { return a.election },
		"from afar": func(_, b *running) *tenure.Election { return b.election },
	}
	for why, leave := range leave {
		for who, asks := range wish {
			t.Run(why+", "+who, func(t *testing.T) {
				bubbles(t, func(t *testing.T, store operated) { namedWhileLeaving(t, store, leave, asks) })
			})
		}
	}
}

func namedWhileLeaving(t *testing.T, store operated, leave func(*running), asks func(a, b *running) *tenure.Election) {
	quick := func(c *tenure.Config) { c.Tuning.Poll, c.Tuning.PollStable = time.Second, time.Second }
	var cause error
	a := start(t, mustNew(t, store, "a", quick), func(ctx context.Context, _ *tenure.Term) error {
		<-ctx.Done()
		cause = context.Cause(ctx)
		time.Sleep(8 * time.Second) // a renewal shows the request in the store
		return nil
	})
	within(t, lease, a.won, "term of a")
	others := map[string]*running{}
	for _, id := range []string{"b", "c", "d", "e", "f"} {
		others[id] = start(t, mustNew(t, store, id, quick), holdOn)
	}
	time.Sleep(lease)
	leave(a)
	time.Sleep(time.Millisecond)
	if err := asks(a, others["b"]).HandOver(t.Context(), "d"); err != nil {
		t.Fatal(err)
	}
	within(t, lease, others["d"].won, "term of d")
	if errors.Is(cause, tenure.ErrHandOver) {
		t.Errorf("the first reason to leave was %v", cause)
	}
	_ = a.end(t)
	for _, r := range others {
		_ = r.end(t)
	}
}

func TestTheLastWordSaysWhoFollows(t *testing.T) {
	bubbles(t, func(t *testing.T, store operated) {
		a := start(t, mustNew(t, store, "a", nil), func(ctx context.Context, _ *tenure.Term) error {
			<-ctx.Done()
			time.Sleep(8 * time.Second)
			return nil
		})
		within(t, lease, a.won, "term of a")
		others := map[string]*running{}
		for _, id := range []string{"b", "c", "d", "e", "f"} {
			others[id] = start(t, mustNew(t, store, id, nil), holdOn)
		}
		time.Sleep(lease)
		a.stop()
		if err := others["b"].election.HandOver(t.Context(), "d"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(6 * time.Second) // the leader has heard of it
		if err := a.election.HandOver(t.Context(), "e"); err != nil {
			t.Fatal(err)
		}
		within(t, 3*lease, others["e"].won, "term of e")
		_ = a.end(t)
		for _, r := range others {
			_ = r.end(t)
		}
	})
}

// Where the named candidate leads, a hand-over would depose it for nothing.
func TestHandOverToTheLeaderChangesNothing(t *testing.T) {
	for who, asks := range map[string]func(a, b *running) *tenure.Election{
		"by itself": func(a, _ *running) *tenure.Election { return a.election },
		"from afar": func(_, b *running) *tenure.Election { return b.election },
	} {
		t.Run(who, func(t *testing.T) {
			bubbles(t, func(t *testing.T, store operated) {
				a := start(t, mustNew(t, store, "a", nil), holdOn)
				term := within(t, lease, a.won, "term of a")
				b := start(t, mustNew(t, store, "b", nil), holdOn)
				time.Sleep(lease + time.Second) // between two renewals
				before, _ := store.Read(t.Context(), key)
				if err := asks(a, b).HandOver(t.Context(), "a"); err != nil {
					t.Errorf("HandOver returned %v", err)
				}
				if after, _ := store.Read(t.Context(), key); after.Version != before.Version {
					t.Errorf("the store holds %s", after.Value)
				}
				time.Sleep(10 * lease)
				if err := term.Err(); err != nil || term.Soft().Err() != nil {
					t.Errorf("a does not lead any more: %v, %v", err, context.Cause(term.Soft()))
				}
				_ = a.end(t)
				_ = b.end(t)
			})
		})
	}
}

// A process that names its own ID means itself, and not the leader that has the same by mistake.
func TestHandOverToANamesakeOfTheLeader(t *testing.T) {
	bubbles(t, func(t *testing.T, store operated) {
		first := start(t, mustNew(t, store, "a", nil), holdOn)
		within(t, lease, first.won, "term of the first a")
		second := start(t, mustNew(t, store, "a", nil), holdOn)
		time.Sleep(lease)
		if err := second.election.HandOver(t.Context(), "a"); err != nil {
			t.Errorf("HandOver returned %v", err)
		}
		within(t, lease, second.won, "term of the second a")
		_ = first.end(t)
		_ = second.end(t)
	})
}

// A priority asks for its own process, too.
func TestAPriorityDisplacesANamesake(t *testing.T) {
	bubbles(t, func(t *testing.T, store operated) {
		first := start(t, mustNew(t, store, "a", nil), holdOn)
		within(t, lease, first.won, "term of the first a")
		second := start(t, mustNew(t, store, "a", func(c *tenure.Config) { c.Priority = 1 }), holdOn)
		within(t, 5*lease, second.won, "term of the second a")
		_ = first.end(t)
		_ = second.end(t)
	})
}

func TestHandOverOfARecordThatNobodyCanHold(t *testing.T) {
	bubbles(t, func(t *testing.T, store operated) {
		version := store.Put(key, fmt.Appendf(nil, outOfReach, uint64(lastTerm), 1))
		if err := mustNew(t, store, "b", nil).HandOver(t.Context(), ""); !errors.Is(err, tenure.ErrMalformed) {
			t.Errorf("HandOver returned %v", err)
		}
		if e, _ := store.Read(t.Context(), key); e.Version != version {
			t.Errorf("the store holds %s", e.Value)
		}
	})
}
