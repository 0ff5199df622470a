package tenure_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/admin"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/memory"
)

// tooHigh is a record with a lease of 15 s and a term that no candidate can have reached.
const tooHigh = `{"leaderID":"x","incarnation":"i","term":%d,"leaseMillis":15000,"seq":1,"nonce":"n%d"}`

// lastTerm is the highest term that a record can show.
const lastTerm = 1<<53 - 1

// Earlier versions stopped an election forever after one record with the last term: no candidate
// could claim above it, and every candidate remembered it after the key was deleted.
func TestTermAboveTheLimitIsWaitedOut(t *testing.T) {
	bubbles(t, func(t *testing.T, store operated) {
		var events diary
		a, old := elect(t, store, "a", func(c *tenure.Config) { c.OnEvent = events.note })
		b := start(t, mustNew(t, store, "b", nil), holdOn)
		time.Sleep(lease)
		store.Put(key, fmt.Appendf(nil, tooHigh, uint64(lastTerm), 1))
		put := time.Now()
		within(t, lease, old.Context().Done(), "end of a's term")
		var next *tenure.Term
		select {
		case next = <-a.won:
		case next = <-b.won:
		}
		if took := time.Since(put); took < lease || took > 3*lease {
			t.Errorf("elected after %v; the record shows a lease of %v", took, lease)
		}
		if next.Token() <= old.Token() || next.Token() > old.Token()+100 {
			t.Errorf("token %d after token %d", next.Token(), old.Token())
		}
		if alarm := events.find(tenure.EventAlarm); alarm == nil || !errors.Is(alarm.Cause, tenure.ErrMalformed) {
			t.Errorf("alarm of a: %+v", alarm)
		}
	})
}

func TestStatusShowsATermAboveTheLimitAsMalformed(t *testing.T) {
	bubbles(t, func(t *testing.T, store operated) {
		store.Put(key, fmt.Appendf(nil, tooHigh, uint64(lastTerm), 1))
		s, err := mustNew(t, store, "a", nil).Wait(t.Context(), func(s tenure.Status) bool { return s.Known })
		if err != nil || s.Leader.Exists() || s.Record.Kind != admin.Malformed || s.Record.Lease != lease ||
			!errors.Is(s.Record.Problem, tenure.ErrMalformed) {
			t.Errorf("Wait returned %+v, %v", s, err)
		}
	})
}

// If the store has no floor, a term from another handle's clock is credible, and the next term is
// above it.
func TestStoreWithoutAFloorLosesNoCredibleTerm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := withoutFloor{memory.NewPolled()}
		now := uint64(time.Now().UnixMicro())
		for i, made := range []uint64{1 << 41, now, 2 * now} {
			store.Put(key, fmt.Appendf(nil, tooHigh, made, i))
			a := start(t, mustNew(t, store, "a", nil), holdOn)
			if term := within(t, 3*lease, a.won, "term of a"); term.Token() != made+1 {
				t.Errorf("token %d after term %d", term.Token(), made)
			}
			_ = a.end(t)
		}
		store.Put(key, fmt.Appendf(nil, tooHigh, uint64(lastTerm), 4))
		elect(t, store, "a", nil)
	})
}

// withoutFloor is a store without a floor.
type withoutFloor struct{ *memory.Polled }

func (g withoutFloor) Read(ctx context.Context, key string) (driver.Entry, error) {
	e, err := g.Polled.Read(ctx, key)
	e.Floor, e.Pristine = 0, false
	return e, err
}
