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

// Trouble names the open term. It names none once this process campaigns again.
func TestTroubleNamesTheOpenTerm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := faults.New(memory.NewPolled(), 1, faults.Plan{})
		var events diary
		r := start(t, mustNew(t, store, "a", func(c *tenure.Config) { c.OnEvent = events.note }), holdOn)
		token := within(t, 3*lease, r.won, "term").Token()
		store.Next(faults.Write, faults.Fail)
		time.Sleep(lease)
		store.Partition()
		time.Sleep(5 * lease)
		_ = r.end(t)
		synctest.Wait()
		open, seen := uint64(0), make(map[uint64]int)
		for _, e := range events.events {
			switch e.Kind {
			case tenure.EventElected:
				open = token
			case tenure.EventCandidate:
				open = 0
			case tenure.EventTrouble:
				seen[open]++
				if e.Term != open {
					t.Errorf("trouble (%v) has term %d, want %d", e.Cause, e.Term, open)
				}
			}
		}
		if seen[token] == 0 || seen[0] == 0 {
			t.Errorf("trouble by open term: %v", seen)
		}
	})
}

// A watch that fails while this process leads is trouble of its term.
func TestTroubleOfAWatchNamesTheOpenTerm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var events diary
		r := start(t, mustNew(t, unwatchable{far(0)}, "a", func(c *tenure.Config) { c.OnEvent = events.note }), holdOn)
		token := within(t, 3*lease, r.won, "term").Token()
		time.Sleep(lease)
		_ = r.end(t)
		synctest.Wait()
		last := uint64(0)
		for _, e := range events.events {
			if e.Kind == tenure.EventTrouble {
				last = e.Term
			}
		}
		if last != token {
			t.Errorf("the last trouble has term %d, want %d", last, token)
		}
	})
}

// An alarm names the term that is open when it occurs, and which it may end.
func TestAlarmNamesTheOpenTerm(t *testing.T) {
	bubbles(t, func(t *testing.T, store operated) {
		var events diary
		r := start(t, mustNew(t, store, "a", func(c *tenure.Config) { c.OnEvent = events.note }), holdOn)
		token := within(t, 3*lease, r.won, "term").Token()
		store.Delete(key)
		within(t, 3*lease, r.won, "second term")
		if e := events.find(tenure.EventAlarm); e == nil || e.Term != token {
			t.Errorf("alarm %+v, want term %d", e, token)
		}
	})
}

// An error of lead after a hand-over is about the term of that work.
func TestFailureNamesItsTerm(t *testing.T) {
	bubbles(t, func(t *testing.T, store operated) {
		var events diary
		failure := errors.New("boom")
		r := start(t, mustNew(t, store, "a", func(c *tenure.Config) { c.OnEvent = events.note }),
			func(ctx context.Context, _ *tenure.Term) error {
				<-ctx.Done()
				return failure
			})
		token := within(t, 3*lease, r.won, "term").Token()
		handOver(t, r.election, "")
		within(t, 3*lease, r.won, "second term")
		if e := events.find(tenure.EventFailed); e == nil || e.Term != token || !errors.Is(e.Cause, failure) {
			t.Errorf("failed %+v, want term %d", e, token)
		}
	})
}
