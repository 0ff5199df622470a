//go:build integration && unix

package guard

import (
	"testing"

	"github.com/tenure-go/tenure/cmd/internal/test/guardtest"
)

// These tests run real processes, possibly on a slow machine. They check the order of events and
// that no event comes too early. The tests in virtual time check when each event is due.

func TestCommandIsKilledIfTheLeaseIsNeverRenewed(t *testing.T) {
	guardtest.Alone(t, func(t *testing.T) {
		c := newCandidate(t)
		r := c.run(deafParent, 500*ms, 800*ms)
		c.isKilled(r, 500*ms, 800*ms)
	})
}

func TestCommandMayShutDownWhenTheLeaseIsOver(t *testing.T) {
	guardtest.Alone(t, func(t *testing.T) {
		c := newCandidate(t)
		r := c.run(guardtest.Worker{Finish: 100 * ms, Code: 3}, 500*ms, long)
		c.ends(r, Ending{Code: 3, Forced: true})
		if _, ok := c.journal.Find("command", "end"); !ok {
			t.Error("it did not end in good order")
		}
		if n := c.journal.Count("command", "SIGTERM"); n != 1 {
			t.Errorf("it was asked to end %d times", n)
		}
	})
}

// A stopped process receives no signal until it is continued.
func TestStoppedCommandIsContinuedToEnd(t *testing.T) {
	guardtest.Alone(t, func(t *testing.T) {
		c := newCandidate(t)
		r := c.guard.Run(shell("kill -STOP $$; exit 9"), c.lease(long), long)
		c.started(r)
		c.shorten(500 * ms)
		c.ends(r, Ending{Signal: 15, Forced: true})
	})
}
