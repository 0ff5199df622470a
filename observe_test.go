package tenure_test

import (
	"math"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tenure-go/tenure"
)

// goroutines counts the goroutines of this bubble. The runtime sometimes has others.
func goroutines() int {
	all := make([]byte, 1<<20)
	stacks := string(all[:runtime.Stack(all, true)])
	own := regexp.MustCompile(`synctest bubble \d+]`).FindString(stacks) // the first is the caller
	return strings.Count(stacks, own)
}

func TestObserveFollowsWithoutAGoroutine(t *testing.T) {
	bubbles(t, func(t *testing.T, store operated) {
		var events diary
		o := mustNew(t, store, "observer", func(c *tenure.Config) { c.OnEvent = events.note })
		before := goroutines()
		stop, again := o.Observe(), o.Observe()
		least := math.MaxInt
		for range 60 { // in some of these minutes it reads
			time.Sleep(time.Second)
			synctest.Wait()
			least = min(least, goroutines())
		}
		if least > before {
			t.Errorf("%d goroutines at least, %d before", least, before)
		}
		a, _ := elect(t, store, "a", nil)
		time.Sleep(2 * lease)
		if s := o.Status(); s.Leader.ID != "a" || !s.Confirmed {
			t.Errorf("while it observes: %+v", s)
		}
		if e := events.find(tenure.EventLeader); e == nil || e.Leader.ID != "a" {
			t.Errorf("the event is %+v", e)
		}
		stop()
		stop()
		_ = a.end(t)
		time.Sleep(2 * lease)
		if s := o.Status(); s.Leader.Exists() {
			t.Errorf("one of two observers has stopped: %+v", s)
		}
		again()
		elect(t, store, "b", nil)
		time.Sleep(2 * lease)
		if s := o.Status(); s.Leader.Exists() {
			t.Errorf("no observer is left: %+v", s)
		}
	})
}

// The term and the address stay the same when a leader changes its metadata.
func TestObserverSeesChangedMetadata(t *testing.T) {
	bubbles(t, func(t *testing.T, store operated) {
		zone := func(z string) func(*tenure.Config) {
			return func(c *tenure.Config) { c.Metadata = map[string]string{"zone": z} }
		}
		a, _ := elect(t, store, "a", zone("east"))
		o := mustNew(t, store, "o", nil)
		defer o.Observe()()
		for _, z := range []string{"east", "west", "east"} {
			reconfigure(t, a.election, zone(z))
			time.Sleep(3 * lease)
			if got := o.Status().Leader.Metadata["zone"]; got != z {
				t.Errorf("the leader's zone is %q, want %q", got, z)
			}
		}
	})
}

// The time of the last renewal is for people: a record that nobody holds has none.
func TestRecordShowsWhenItWasRenewed(t *testing.T) {
	bubbles(t, func(t *testing.T, store operated) {
		a, _ := elect(t, store, "a", nil)
		won := time.Now()
		o := mustNew(t, store, "o", nil)
		defer o.Observe()()
		time.Sleep(2 * lease)
		if got := o.Status().Record.Updated; got.Sub(won) < lease/2 || time.Since(got) > lease {
			t.Errorf("elected at %v, renewed at %v, now it is %v", won, got, time.Now())
		}
		_ = a.end(t)
		time.Sleep(2 * lease)
		if r := o.Status().Record; !r.Updated.IsZero() {
			t.Errorf("after the release: %+v", r)
		}
	})
}
