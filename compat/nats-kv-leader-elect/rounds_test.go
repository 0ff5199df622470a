package election

import (
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/tenure-go/tenure/driver/faults"
	"github.com/tenure-go/tenure/driver/memory"
)

// growing is a back-off that starts at a second and doubles. It keeps its arguments.
type growing struct {
	mu    sync.Mutex
	asked []int
}

func (g *growing) Duration(n int) time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.asked = append(g.asked, n)
	return time.Second << min(n, 6)
}

// were returns its arguments since the last call of were.
func (g *growing) were() []int {
	g.mu.Lock()
	defer g.mu.Unlock()
	asked := g.asked
	g.asked = nil
	return asked
}

// TestBackoffSlowsDown: the longer a candidate has waited, the less often it campaigns. After a
// term it starts again.
func TestBackoffSlowsDown(t *testing.T) {
	bubble(t, func(t *testing.T, store *memory.Store) {
		a := join(t, "a", store)
		a.mustLead(soon)
		g := &growing{}
		b := join(t, "b", store, WithBackoff(g))
		time.Sleep(100 * time.Second) // after 1, 3, 7, 15, 31, 63 s
		if got, want := g.were(), []int{0, 1, 2, 3, 4, 5, 6}; !slices.Equal(got, want) {
			t.Errorf("asked for %v, not %v", got, want)
		}
		a.line.Partition()
		took := b.mustLead(2 * time.Minute) // its next campaign is at 127 s
		if at := 27 * time.Second; took < at-time.Second || took > at+time.Second {
			t.Errorf("leads %v after the last one crashed, not %v", took, at)
		}
		g.were()
		store.Delete("billing")
		time.Sleep(lease)
		if asked := g.were(); len(asked) == 0 || asked[0] != 0 {
			t.Errorf("after a term it is asked for %v", asked)
		}
	})
}

// TestBackoffKeepsTheLeader: after an outage of the servers, the last leader leads first.
func TestBackoffKeepsTheLeader(t *testing.T) {
	slow := WithBackoff(UpTo(20 * time.Second))
	kept := 0
	const runs = 20
	for range runs {
		bubble(t, func(t *testing.T, store *memory.Store) {
			outage := faults.New(store, 1, faults.Plan{})
			a := join(t, "a", outage, slow)
			a.mustLead(soon)
			b, c := join(t, "b", outage, slow), join(t, "c", outage, slow)
			watchOver(t, a, b, c)
			time.Sleep(5 * time.Minute)
			outage.Partition()
			time.Sleep(25 * time.Second)
			outage.Heal()
			if leader, _ := leadsWithin(t, time.Minute, a, b, c); leader == a {
				kept++
			}
		})
	}
	t.Logf("in %d of %d outages the leader stayed", kept, runs)
	if kept < runs*8/10 {
		t.Errorf("in %d of %d outages another took over", runs-kept, runs)
	}
}

// TestBackoffHandsOverAtOnce: after a release, no candidate backs off.
func TestBackoffHandsOverAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T, store *memory.Store) {
		slow := WithBackoff(every(time.Hour))
		a := join(t, "a", store, slow)
		a.mustLead(soon)
		b := join(t, "b", store, slow)
		time.Sleep(lease)
		a.Stop()
		if took := b.mustLead(soon); took > 20*time.Millisecond {
			t.Errorf("took %v", took)
		}
		// As nats kv del does. b then releases a record that is gone, and leads again.
		store.Delete("billing")
		time.Sleep(time.Millisecond)
		if took := b.mustLead(soon); took > 600*time.Millisecond {
			t.Errorf("took %v", took)
		}
	})
}

func TestUpToGrowsToItsLimit(t *testing.T) {
	for _, c := range []struct {
		n    int
		want time.Duration
	}{{0, 500 * time.Millisecond}, {1, time.Second}, {8, 4500 * time.Millisecond}, {9, 5 * time.Second}, {1000, 5 * time.Second}} {
		least, most := time.Hour, time.Duration(0)
		for range 1000 {
			d := UpTo(5 * time.Second).Duration(c.n)
			least, most = min(least, d), max(most, d)
		}
		if least < c.want*3/4 || least > c.want*8/10 || most > c.want*5/4 || most < c.want*12/10 {
			t.Errorf("wait %d is from %v to %v", c.n, least, most)
		}
	}
}
