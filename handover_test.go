package tenure_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/tenure-go/tenure"
)

// Who leaves for another reason takes down who is to follow, said in its own process or by way of the store; and the last
// word counts.
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
	quick := func(c *tenure.Config) { c.Poll, c.PollStable = time.Second, time.Second }
	var cause error
	a := start(t, mustNew(t, store, "a", quick), func(ctx context.Context, _ *tenure.Term) error {
		<-ctx.Done()
		cause = context.Cause(ctx)
		time.Sleep(8 * time.Second) // a renewal shows what was asked in the store
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
