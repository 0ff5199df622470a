package tenure_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/memory"
)

// pace describes how long a store takes to answer, and what its late answers show.
type pace struct {
	read, watch, push time.Duration
	staleRead         bool  // an answer shows the state at the time of the request
	lateWatch         bool  // a watch begins with the answer, not with the request
	refused           int64 // this many watches fail
}

// paced is a store with such a pace.
type paced struct {
	*memory.Store
	pace
	watches atomic.Int64
}

var errRefused = errors.New("refused")

func (p *paced) Read(ctx context.Context, key string) (driver.Entry, error) {
	if p.staleRead {
		defer time.Sleep(p.read)
	} else {
		time.Sleep(p.read)
	}
	return p.Store.Read(ctx, key)
}

func (p *paced) Watch(ctx context.Context, key string, see func(driver.Entry)) (stop func(), err error) {
	if p.watches.Add(1) <= p.refused {
		time.Sleep(p.watch)
		return nil, errRefused
	}
	if p.lateWatch {
		time.Sleep(p.watch)
	} else {
		defer time.Sleep(p.watch)
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return p.Store.Watch(context.WithoutCancel(ctx), key, func(e driver.Entry) {
		time.AfterFunc(p.push, func() { see(e) })
	})
}

// leads writes a record that the observer would not read again for 25 minutes if changes are
// pushed.
func leads(store *memory.Store, leader string, term int) {
	store.Put(key, fmt.Appendf(nil, `{"leaderID":%q,"incarnation":"i","term":%d,"leaseMillis":3600000,"seq":1,"nonce":%q}`, leader, term, leader))
}

// TestObserverMissesNoChange tries any order of the answers to reads and watches, of a change, and
// of one observer that stops and another that starts.
func TestObserverMissesNoChange(t *testing.T) {
	const ms = time.Millisecond
	for _, p := range paces([]time.Duration{0, 2 * ms, 5 * ms}) {
		for _, starts := range []time.Duration{0, ms, 3 * ms, 6 * ms, 20 * ms} {
			for change := ms; change < 13*ms; change += 2 * ms {
				synctest.Test(t, func(t *testing.T) {
					if l := lastLeader(t, p, starts, change); l != "b" {
						t.Errorf("%+v, another observer after %v, b leads after %v: it sees %q", p, starts, change, l)
					}
				})
			}
		}
	}
}

func paces(delays []time.Duration) (all []pace) {
	for _, read := range delays {
		for _, watch := range delays {
			for bits := range 16 {
				p := pace{read: read, watch: watch, staleRead: bits&1 > 0, lateWatch: bits&2 > 0, refused: int64(bits & 4 / 4)}
				if bits&8 > 0 {
					p.push = delays[1]
				}
				all = append(all, p)
			}
		}
	}
	return all
}

// lastLeader returns the leader that an observer sees a minute after a change from a to b. Another
// observer begins at once and stops when it knows a leader, as Wait does.
func lastLeader(t *testing.T, p pace, starts, change time.Duration) string {
	t.Helper()
	store := &paced{Store: memory.New(), pace: p}
	leads(store.Store, "a", 7)
	o := mustNew(t, store, "o", nil)
	time.AfterFunc(change, func() { leads(store.Store, "b", 9) })
	var stop func()
	time.AfterFunc(starts, func() { stop = o.Observe() })
	if _, err := o.Wait(t.Context(), func(s tenure.Status) bool { return s.Known }); err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Minute)
	synctest.Wait()
	last := o.Status().Leader.ID
	stop()
	time.Sleep(time.Second) // until the last calls of the store have ended
	return last
}
