// Package electiontest is the conformance kit for elections over a store: real elections, as tests
// that every adapter runs after those of package drivertest.
//
//	func TestElections(t *testing.T) {
//		electiontest.Run(t, func(t testing.TB) drivertest.Harness {
//			return drivertest.Harness{Store: open(t)}
//		})
//	}
//
// These tests require nothing beyond the contract of package driver. They find faults that no case
// of drivertest covers.
package electiontest

import (
	"context"
	"testing"
	"time"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/drivertest"
	"github.com/tenure-go/tenure/driver/faults"
	"github.com/tenure-go/tenure/internal/test/kit"
	"github.com/tenure-go/tenure/internal/test/wait"
)

// Run runs all cases as subtests in parallel, each with a harness of its own from open. It takes a
// few times the lease. The lease is the longest of two seconds, Harness.Lease and the store's
// minimum.
//
// Two leaders and a falling token fail a case at once. After any other failure, the case runs again
// if its leader lost the lease because the machine stalled, until the test's time limit.
func Run(t *testing.T, open func(t testing.TB) drivertest.Harness) {
	t.Run("election", func(t *testing.T) { // which ends when all within have
		for _, c := range cases() {
			t.Run(c.name, func(t *testing.T) {
				t.Parallel()
				kit.Try(t, c.why, c.on(open))
			})
		}
	})
}

// RunInBubbles is Run in virtual time, for stores without a network: each case has a bubble of
// testing/synctest to itself. Waiting costs no time there, and a slow machine loses no lease. The
// store that open returns must be made in the bubble and use the clock of package time.
func RunInBubbles(t *testing.T, open func(t testing.TB) drivertest.Harness) {
	t.Run("election", func(t *testing.T) {
		for _, c := range cases() {
			t.Run(c.name, func(t *testing.T) { kit.TryInBubble(t, c.why, c.on(open)) })
		}
	})
}

// testCase is one thing that elections must do.
type testCase struct {
	name string
	why  string
	run  func(*trial)
}

// on runs the case on the harness that open returns.
func (c testCase) on(open func(t testing.TB) drivertest.Harness) func(testing.TB, kit.Timing) {
	return func(t testing.TB, time kit.Timing) { c.run(newTrial(t, open(t), time)) }
}

func cases() []testCase {
	return []testCase{
		{"a first candidate leads", "it is what the store is for", holding(firstLeads)},
		{"a renewed lease keeps the others out", "the store must prevent two leaders", holding(othersWait)},
		{"a release lets the next one lead", "a planned hand-over must not cost a lease", holding(releasePassesOn)},
		{"a leader hears that it is asked to hand over",
			"another process writes the request to the leader's cell", holding(requestIsHeard)},
		{"tokens grow over releases and removals",
			"a resource refuses a lower token, so the new leader could not write to it", holding(tokensGrow)},
		{"a removed record ends the term", "deleting it is how operators force a new leader", holding(removalEndsTerm)},
		{"foreign bytes are not overwritten", "by mistake, another program may use the key", holding(foreignStays)},
		{"a claim whose answer was lost is recognized",
			"a candidate that does not know its own claim locks itself out", holding(ownClaim(faults.LoseAnswer))},
		{"a claim that was delivered twice is recognized",
			"a proxy may repeat a request, and then the second answer is a conflict", holding(ownClaim(faults.Replay))},
		{"a silent leader is replaced, and not too soon",
			"no process reports this failure", holding(silentIsReplaced)},
	}
}

// trial is one run of one case.
type trial struct {
	kit.Reporter
	drivertest.Harness
	time kit.Timing
}

func newTrial(r kit.Reporter, h drivertest.Harness, time kit.Timing) *trial {
	return &trial{Reporter: r, Harness: h, time: time}
}

// left returns how long anything may still take that should happen.
func (t *trial) left() time.Duration {
	if t.Patience > 0 {
		return t.Patience
	}
	return t.time.Left()
}

// other is the store as another process has it, so that a lock within one does not hide a race.
func (t *trial) other() driver.Store {
	if t.Peer != nil {
		return t.Peer
	}
	return t.Store
}

// leaseOf returns this lease, or the shortest that the store is for.
func (t *trial) leaseOf(lease time.Duration) time.Duration {
	return max(lease, driver.AbilitiesOf(t.Store).MinLease())
}

// read returns the election's cell.
func (c *contest) read() driver.Entry {
	c.Helper()
	ctx, cancel := context.WithTimeout(c.ctx, c.left())
	defer cancel()
	e, err := c.Store.Read(ctx, c.election)
	if err != nil {
		c.Fatalf("read of %q: %v", c.election, err)
	}
	return e
}

// awaitCell reads until the cell is in a state.
func (c *contest) awaitCell(state string, reached func(driver.Entry) bool) {
	c.Helper()
	if !wait.Within(c.left(), func() bool { return reached(c.read()) }) {
		c.Fatalf("%q does not become %s", c.election, state)
	}
}

// removals are the ways of removing the record that the harness has.
func (c *contest) removals() []func() {
	var all []func()
	for _, do := range []func(context.Context, string) error{c.Delete, c.Purge} {
		if do != nil {
			all = append(all, func() { c.remove(do) })
		}
	}
	return all
}

func (c *contest) remove(do func(context.Context, string) error) {
	c.Helper()
	ctx, cancel := context.WithTimeout(c.ctx, c.left())
	defer cancel()
	if err := do(ctx, c.election); err != nil {
		c.Fatalf("removal of %q: %v", c.election, err)
	}
	c.awaitCell("absent", driver.Entry.Absent)
}

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

// easy is the lease, unless the harness or the store needs a longer one.
const easy = 2 * time.Second

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
