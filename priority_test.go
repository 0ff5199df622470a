package tenure_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/faults"
	"github.com/tenure-go/tenure/driver/memory"
)

func TestHigherPriorityTakesOverOnceMature(t *testing.T) {
	bubbles(t, func(t *testing.T, store operated) {
		var d diary
		_, first := elect(t, store, "a", nil)
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
			t.Errorf("the event of the request: %+v", e)
		}
		if err := second.Err(); err != nil {
			t.Errorf("leadership went on moving: %v", err)
		}
	})
}

// The priorities of the leader and of a candidate may change while they run.
func TestChangedPriorityMovesLeadership(t *testing.T) {
	bubbles(t, func(t *testing.T, store operated) {
		a, _ := elect(t, store, "a", nil)
		b := start(t, mustNew(t, store, "b", nil), holdOn)
		time.Sleep(5 * lease)
		reconfigure(t, a.election, func(c *tenure.Config) { c.Priority = -1 })
		within(t, 3*lease, b.won, "term of b")
		reconfigure(t, a.election, func(c *tenure.Config) { c.Priority = 5 })
		within(t, 15*lease, a.won, "second term of a")
	})
}

// A candidate that has declined and backs off does not interrupt the leader.
func TestCandidateInBackOffRequestsNoHandOver(t *testing.T) {
	bubbles(t, func(t *testing.T, store operated) {
		elect(t, store, "a", nil)
		var asked atomic.Int64
		b := start(t, mustNew(t, store, "b", func(c *tenure.Config) {
			c.Priority, c.Tuning.Backoff = 1, func(int) time.Duration { return time.Hour }
			c.OnEvent = func(e tenure.Event) {
				if e.Kind == tenure.EventAsking {
					asked.Add(1)
				}
			}
		}), func(context.Context, *tenure.Term) error { return tenure.ErrDecline })
		within(t, time.Minute, b.won, "term of b")
		time.Sleep(50 * time.Minute)
		if n := asked.Load(); n != 1 {
			t.Errorf("b asked %d times", n)
		}
	})
}

// silent is a store whose members should push to each other, but no push arrives.
type silent struct{ *memory.Polled }

func (silent) Watch(context.Context, string, func(driver.Entry)) (func(), error) {
	return func() {}, nil
}
func (silent) PeerPushed() {}

// A leader that hands over cannot know whether others received its push.
func TestHandOverWithFailingPushes(t *testing.T) {
	for delay := range 8 {
		synctest.Test(t, func(t *testing.T) {
			store := silent{memory.NewPolled()}
			a, _ := elect(t, store, "a", nil)
			b := start(t, mustNew(t, store, "b", nil), holdOn)
			time.Sleep(2*lease + time.Duration(delay)*900*time.Millisecond)
			handOver(t, b.election, "b")
			select {
			case <-b.won:
			case <-a.won:
				t.Errorf("delay %d: leadership went back to a", delay)
			case <-time.After(4 * lease):
				t.Errorf("delay %d: no leader", delay)
			}
		})
	}
}

// A candidate requests a hand-over only while it campaigns, however slow the store is.
func TestPriorityRequestEndsWithItsCampaign(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memory.NewPolled()
		elect(t, store, "a", nil)
		f := faults.New(store, 1, faults.Plan{})
		f.Next(faults.Write, faults.HangBefore)
		asking := make(chan struct{})
		b := start(t, mustNew(t, f, "b", func(c *tenure.Config) {
			c.Priority = 1
			c.OnEvent = func(e tenure.Event) {
				if e.Kind == tenure.EventAsking {
					close(asking)
				}
			}
		}), holdOn)
		within(t, 3*lease, asking, "request")
		synctest.Wait()
		stopped := time.Now()
		_ = b.end(t)
		f.Wait()
		if took := time.Since(stopped); took > 0 {
			t.Errorf("the request went on for %v", took)
		}
	})
}
