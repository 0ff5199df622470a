package drivertest

import (
	"fmt"
	"runtime"
	"sync"

	"github.com/tenure-go/tenure/internal/test/kit"
)

// holding makes a case of what is to be tried with an election. Where the machine can stall, a case
// that failed after a leader had lost its lease to that is tried again with another election: it says
// nothing about the store. Breaches of safety fail the case at once.
func holding(run func(*contest)) func(*trial) {
	return func(t *trial) {
		for {
			c, v := t.attempt(run)
			if !t.time.Stalls || !c.stalled() || c.breached.Load() || !v.failed() || t.left() < 10*c.lease {
				v.pass(t)
				return
			}
			t.Logf("again, since the machine has stalled: %q", v.failures)
		}
	}
}

// attempt runs a case once, with the reports held back.
func (t *trial) attempt(run func(*contest)) (*contest, *verdict) {
	v := &verdict{Reporter: t.Reporter}
	c := newContest(t, t.leaseOf(max(easy, t.Lease)))
	held := *t
	held.Reporter = v
	c.trial = &held
	done := make(chan struct{})
	go func() { // which may end itself
		defer close(done)
		defer c.close()
		run(c)
	}()
	<-done
	return c, v
}

// verdict holds back what one attempt reports.
type verdict struct {
	kit.Reporter

	mu       sync.Mutex
	failures []string
	skipped  string
}

func (v *verdict) Errorf(format string, args ...any) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.failures = append(v.failures, fmt.Sprintf(format, args...))
}

func (v *verdict) Fatalf(format string, args ...any) {
	v.Errorf(format, args...)
	runtime.Goexit()
}

func (v *verdict) Skipf(format string, args ...any) {
	v.mu.Lock()
	v.skipped = fmt.Sprintf(format, args...)
	v.mu.Unlock()
	runtime.Goexit()
}

func (v *verdict) failed() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return len(v.failures) > 0
}

// pass hands the reports on.
func (v *verdict) pass(to kit.Reporter) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, failure := range v.failures {
		to.Errorf("%s", failure)
	}
	if len(v.failures) == 0 && v.skipped != "" {
		to.Skipf("%s", v.skipped)
	}
}
