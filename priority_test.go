package tenure_test

import (
	"errors"
	"testing"
	"time"

	"github.com/tenure-go/tenure"
)

func TestAHigherPriorityTakesOverOnceItIsMature(t *testing.T) {
	bubbles(t, func(t *testing.T, store operated) {
		var d diary
		a := start(t, mustNew(t, store, "a", nil), holdOn)
		first := within(t, time.Minute, a.won, "term of a")
		b := start(t, mustNew(t, store, "b", func(c *tenure.Config) { c.Priority, c.OnEvent = 1, d.note }), holdOn)
		time.Sleep(2*lease - time.Second)
		if err := first.Err(); err != nil {
			t.Fatalf("a lost its term to a newcomer: %v", err)
		}
		second := within(t, 3*lease, b.won, "term of b")
		if second.Token() <= first.Token() || !errors.Is(first.Err(), tenure.ErrLost) {
			t.Errorf("tokens %d and %d, first term %v", first.Token(), second.Token(), first.Err())
		}
		time.Sleep(20 * lease)
		if e := d.find(tenure.EventAsking); e == nil || e.Term != first.Token() {
			t.Errorf("told of the request: %+v", e)
		}
		if err := second.Err(); err != nil {
			t.Errorf("leadership went on moving: %v", err)
		}
		_ = a.end(t)
		_ = b.end(t)
	})
}

// A leader's priority may change, and so may a candidate's, while they run.
func TestAChangedPriorityMovesLeadership(t *testing.T) {
	bubbles(t, func(t *testing.T, store operated) {
		a := start(t, mustNew(t, store, "a", nil), holdOn)
		within(t, time.Minute, a.won, "term of a")
		b := start(t, mustNew(t, store, "b", nil), holdOn)
		time.Sleep(5 * lease)
		reconfigure(t, a.election, func(c *tenure.Config) { c.Priority = -1 })
		within(t, 3*lease, b.won, "term of b")
		reconfigure(t, a.election, func(c *tenure.Config) { c.Priority = 5 })
		within(t, 15*lease, a.won, "second term of a")
		_ = a.end(t)
		_ = b.end(t)
	})
}
