//go:build integration && unix

package guard

import (
	"testing"

	"github.com/tenure-go/tenure/cmd/internal/stamp"
	"github.com/tenure-go/tenure/cmd/internal/test/guardtest"
)

// leaving is a command that ends by itself and leaves its children behind.
func leaving(children ...guardtest.Worker) guardtest.Worker {
	return guardtest.Worker{Code: 6, For: 1, Children: children}
}

// A command has ended only when none of its processes is left.
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

// tidied runs a command that leaves a process behind. The stop time is long unless this process or
// one of its children is deaf.
func tidied(t *testing.T, left guardtest.Worker) {
	t.Helper()
	c := newCandidate(t)
	stop := long
	if left.Deaf || len(left.Children) > 0 {
		stop = 800 * ms
	}
	r := c.guard.Run(c.worker(leaving(left)), c.lease(long), stop)
	c.started(r)
	c.ends(r, Ending{Code: 6})
	took := stamp.Now().Sub(c.journal.Await(t, "command", "end").At)
	if least := stop - Reserve(stop); stop != long && took < least-least/10 {
		t.Errorf("what was left had %v, of at least %v", took, least)
	}
	_, asked := c.journal.Find("left", "SIGTERM")
	if _, end := c.journal.Find("left", "end"); end && left.Deaf {
		t.Error("it has ended by itself")
	} else if stop == long && !(asked && end) {
		t.Errorf("asked: %v, ended in good order: %v", asked, end)
	}
}
