//go:build unix

package guard

import (
	"testing"

	"github.com/tenure-go/tenure/cmd/tenure/internal/guard/guardtest"
)

// leaving is a command that ends by itself and leaves its children behind.
func leaving(children ...guardtest.Worker) guardtest.Worker {
	return guardtest.Worker{Code: 6, For: 1, Children: children}
}

// A command has ended when nothing of it is left, and not before.
func TestLeftoversAreEnded(t *testing.T) {
	t.Parallel()
	for why, left := range map[string]guardtest.Worker{
		"one that ends when asked":           {},
		"one that takes its time":            {Finish: 300 * ms},
		"one that ignores that":              {Deaf: true},
		"one with a child of its own":        {Deaf: true, Children: []guardtest.Worker{{Name: "grandchild", Deaf: true}}},
		"one that ended, and left one":       {For: 1, Children: []guardtest.Worker{{Name: "grandchild", Deaf: true}}},
		"one that ends when asked, with one": {Children: []guardtest.Worker{{Name: "grandchild", Deaf: true}}},
	} {
		t.Run(why, func(t *testing.T) {
			guardtest.Alone(t, func(t *testing.T) {
				left.Name = "left"
				tidied(t, left)
			})
		})
	}
}

// tidied runs a command that leaves one behind.
func tidied(t *testing.T, left guardtest.Worker) {
	t.Helper()
	c := newCandidate(t)
	const stop = 800 * ms
	r := c.guard.Run(c.worker(leaving(left)), c.lease(long), stop)
	c.started(r)
	c.ends(r, Ending{Code: 6})
	ended := c.journal.Await(t, "command", "end")
	last := lastAct(c.journal)
	if took := last.Sub(ended.At); !left.Deaf && left.Finish > 0 && took < left.Finish {
		guardtest.TooLate(t, "it was to have %v, and got %v", left.Finish, took)
	} else if left.Deaf && took < stop/2 {
		guardtest.TooLate(t, "it was to have most of %v, and got %v", stop, took)
	}
	if _, asked := c.journal.Find("left", "SIGTERM"); !asked && left.For == 0 {
		guardtest.TooLate(t, "it was not asked, or could not say so")
	}
	if _, end := c.journal.Find("left", "end"); end && left.Deaf {
		t.Error("it has ended by itself")
	} else if !end && !left.Deaf {
		guardtest.TooLate(t, "it did not end in good order")
	}
}

// What is left of a command that ends because the lease is over has only what was left to that.
func TestLeftoversHaveNoMoreThanTheLease(t *testing.T) {
	guardtest.Alone(t, func(t *testing.T) {
		c := newCandidate(t)
		r := c.run(guardtest.Worker{Finish: 500 * ms, Children: []guardtest.Worker{{Name: "left", Deaf: true}}}, 400*ms, 900*ms)
		c.endsInTime(r, Ending{Forced: true}, 400*ms, 900*ms)
	})
}
