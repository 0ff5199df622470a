package electiontest

import "github.com/tenure-go/tenure/internal/test/kit"

// holding makes a case of a function that tries an election. Where the machine can stall, a case
// that failed after a leader had lost its lease to that is tried again with another election: it
// says nothing about the store. Breaches of safety fail the case at once.
func holding(run func(*contest)) func(*trial) {
	return func(t *trial) {
		for {
			c, held := t.attempt(run)
			if !t.time.Stalls || !c.stalled() || c.breached.Load() || len(held.Failures) == 0 || t.left() < 10*c.lease {
				t.report(held)
				return
			}
			t.Logf("again, since the machine has stalled: %q", held.Failures)
		}
	}
}

// attempt runs a case once, with the reports held back.
func (t *trial) attempt(run func(*contest)) (*contest, *kit.Recorder) {
	c := newContest(t, t.leaseOf(max(easy, t.Lease)))
	held := kit.Record(func(r *kit.Recorder) {
		own := *t
		own.Reporter = attempted{r, t.Reporter}
		c.trial = &own
		defer c.close()
		run(c)
	})
	return c, held
}

// attempted holds reports back, except for the log of a case.
type attempted struct {
	*kit.Recorder
	to kit.Reporter
}

func (a attempted) Logf(format string, args ...any) { a.to.Logf(format, args...) }

// report reports the held reports.
func (t *trial) report(held *kit.Recorder) {
	for _, failure := range held.Failures {
		t.Errorf("%s", failure)
	}
	if len(held.Failures) == 0 && held.Skipped != "" {
		t.Skipf("%s", held.Skipped)
	}
}
