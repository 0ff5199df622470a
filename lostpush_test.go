package tenure_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/memory"
)

// severable is a store whose pushes end and begin again.
type severable struct {
	*memory.Store
	mu      sync.Mutex
	severed bool
	watches []func(driver.Entry)
}

// Watch passes entries on while pushes are not severed.
func (s *severable) Watch(ctx context.Context, key string, see func(driver.Entry)) (func(), error) {
	s.mu.Lock()
	s.watches = append(s.watches, see)
	s.mu.Unlock()
	return s.Store.Watch(ctx, key, func(e driver.Entry) {
		s.mu.Lock()
		severed := s.severed
		s.mu.Unlock()
		if !severed {
			see(e)
		}
	})
}

var errSevered = errors.New("the connection for pushes is lost")

// sever ends all pushes, and says so, or lets them pass again, and makes the elections read.
func (s *severable) sever(on bool) {
	s.mu.Lock()
	s.severed = on
	watches := s.watches
	s.mu.Unlock()
	e := driver.Entry{Unverified: true}
	if on {
		e = driver.Entry{Lost: errSevered}
	}
	for _, see := range watches {
		see(e)
	}
}

// TestLostPushesAreReported: the store says that it pushes no longer. The elections say so, and
// poll and hand over as on a store that never pushes. When pushes come again, they count again.
func TestLostPushesAreReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &severable{Store: memory.New()}
		var log diary
		a, _ := elect(t, store, "a", func(c *tenure.Config) { c.OnEvent = log.note })
		b := start(t, mustNew(t, store, "b", nil), holdOn)
		time.Sleep(time.Minute + time.Second) // between two renewals
		store.sever(true)
		synctest.Wait()
		for _, m := range []*tenure.Election{a.election, b.election} {
			if s := m.Status(); s.Pushed || s.Leader.ID != "a" {
				t.Errorf("while nothing is pushed: %+v", s)
			}
		}
		if e := log.find(tenure.EventTrouble); e == nil || !errors.Is(e.Cause, errSevered) {
			t.Errorf("the event is %+v", e)
		}
		handOver(t, b.election, "b")
		within(t, time.Minute, b.won, "term of b, to which a handed over")
		store.sever(false)
		time.Sleep(lease)
		synctest.Wait()
		if !a.election.Status().Pushed || !b.election.Status().Pushed {
			t.Error("pushes that come again do not count")
		}
	})
}
