package s3object

import (
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver"
)

// wiped is the bucket after it was deleted and recreated, or after its server lost its disk.
func (s *stub) wiped() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.objects)
}

// settable shows a time of day that differs from the true one.
func settable(off *atomic.Int64) func(*stub) {
	return answering(func(s *stub, w http.ResponseWriter, _ *http.Request) bool {
		w.Header().Set("Date", time.Now().Add(time.Duration(off.Load())).UTC().Format(http.TimeFormat))
		return false
	})
}

func candidate(t *testing.T, store driver.Store, id string) *tenure.Election {
	t.Helper()
	e, err := tenure.New(store, "billing", tenure.Config{ID: id})
	must(t, err)
	return e
}

func elected(t *testing.T, e *tenure.Election) *tenure.Term {
	t.Helper()
	term, err := e.Campaign(bounded(t, time.Hour))
	must(t, err)
	return term
}

// turn leads for a moment, and returns the token.
func turn(t *testing.T, e *tenure.Election) uint64 {
	t.Helper()
	term := elected(t, e)
	if err := term.Resign(bounded(t, time.Hour)); err != nil {
		t.Error(err)
	}
	return term.Token()
}

// TestServerClockGoesBack: the object has the highest term. Tokens can fall only if the object is
// also deleted, and for a candidate that has seen none of the earlier tokens.
func TestServerClockGoesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var off atomic.Int64
		s := startStub(t, settable(&off))
		old := candidate(t, s.open(t), "old")
		highest := turn(t, old)
		grows := func(token uint64, why string) {
			t.Helper()
			if token <= highest {
				t.Errorf("token %d after %d: %s", token, highest, why)
			}
			highest = max(highest, token)
		}
		off.Store(int64(-24 * time.Hour))
		grows(turn(t, candidate(t, s.open(t), "young")), "the object is there")
		grows(turn(t, old), "the object is there")
		s.wiped()
		grows(turn(t, old), "the candidate has seen all former terms")
		s.wiped()
		if token := turn(t, candidate(t, s.open(t), "younger")); token >= highest {
			t.Errorf("token %d after %d: the documentation is too careful", token, highest)
		}
		grows(turn(t, old), "the candidate has seen all former terms")
		s.wiped()
		off.Store(int64(time.Minute))
		grows(turn(t, candidate(t, s.open(t), "youngest")), "the clock is past the former terms")
	})
}
