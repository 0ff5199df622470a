package patience

import (
	"testing"
	"testing/synctest"
	"time"
)

// limited is a test with a time limit of its own.
type limited struct {
	testing.TB
	left time.Duration
}

func (l limited) Deadline() (time.Time, bool) { return time.Now().Add(l.left), l.left > 0 }

func TestLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct {
			why         string
			limit, want time.Duration
		}{
			{"most of a long limit is for waiting", 10 * time.Minute, 10*time.Minute - reserve},
			{"a short one leaves less for reports", 10 * time.Second, 9 * time.Second},
			{"what comes late is looked at once more", 0 + time.Nanosecond, time.Second},
			{"no limit", 0, unlimited},
		} {
			if got := Left(limited{t, c.limit}); got != c.want {
				t.Errorf("%v of %v: want %v: %s", got, c.limit, c.want, c.why)
			}
		}
		if got := Left(t); got != unlimited {
			t.Errorf("%v in virtual time", got)
		}
		if end, ok := Context(t).Deadline(); !ok || time.Until(end) != unlimited {
			t.Errorf("the context ends at %v", end)
		}
	})
}
