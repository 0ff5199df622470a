//go:build integration

package nats

import (
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/tenure-go/tenure/driver/natskv"
	"github.com/tenure-go/tenure/internal/test/wait"
	"github.com/tenure-go/tenure/test/internal/asking"
	"github.com/tenure-go/tenure/test/internal/natsd"
)

const (
	// long is a lease that every single fault of a server should leave alone. away is the time for
	// which a server is missing: longer than that lease, and longer than the others need to
	// continue without it.
	long = 20 * time.Second
	away = 22 * time.Second
	// gap is the longest time for which a leader with this lease may be unable to write and still
	// leads, whenever that time begins: the lease without its margin, less two times between
	// renewals, less a second that the probe does not see.
	gap = 8 * time.Second
)

// TestLeadersOutliveFaults: a lease of 20 s outlives every single fault of a server, whatever the
// server's role. The time that the other servers need depends on the machine; row r3-faults of
// test/bench measures it. Here no leader may be lost that could have written in time.
func TestLeadersOutliveFaults(t *testing.T) {
	soak(t)
	for _, f := range natsd.Falls() {
		for whose, leads := range map[string]bool{"leader": true, "another": false} {
			t.Run(whose+" "+f.Name, func(t *testing.T) {
				outlive(t, func(a *arena) {
					victim := a.leader()
					if !leads {
						victim = a.Others(victim)[0]
					}
					a.must(f.Fall(a.Cluster, victim))
					time.Sleep(away)
					a.must(f.Rise(a.Cluster, victim))
					a.whole()
				})
			})
		}
	}
	t.Run("rolling restart", func(t *testing.T) { outlive(t, (*arena).roll) })
}

// outlive requires that all leaders that could write in time lead on, and that all elections have a
// leader in the end.
func outlive(t *testing.T, happen func(*arena)) {
	t.Helper()
	a := newArena(t)
	r := a.reign(long, asking.ByTerm, a.open)
	gaps := a.probe(a.open)
	happen(a)
	r.led()
	for i, g := range gaps() {
		n := r.lines[i].terms.Load()
		t.Logf("%s had %d leaders, and the first could not write for %v", r.lines[i].name, n, g)
		if n > 1 && g < gap {
			t.Errorf("%s lost its leader, which could not write for only %v", r.lines[i].name, g)
		}
	}
	r.safe()
}

// TestShortLeasesAreSafe: if a fault is longer than a lease, the term ends before the next leader
// comes.
func TestShortLeasesAreSafe(t *testing.T) {
	soak(t)
	for _, f := range natsd.Falls() {
		t.Run("leader "+f.Name, func(t *testing.T) {
			a := newArena(t)
			r := a.reign(2*time.Second, asking.ByTerm, a.open)
			victim := a.leader()
			a.must(f.Fall(a.Cluster, victim))
			time.Sleep(away / 2)
			a.must(f.Rise(a.Cluster, victim))
			a.whole()
			r.led()
			r.safe()
		})
	}
}

// TestServerIsFrozenUnderLeader: a leader that knows only the frozen server is deposed in time. A
// leader that trusts its last push is detected. Without the second half, the first would prove
// nothing.
func TestServerIsFrozenUnderLeader(t *testing.T) {
	const lease = 2 * time.Second
	a := newArena(t)
	bound := func(n int) *natskv.Store {
		return a.openOver(a.dial(a.Servers[n].URL(), nats.PingInterval(time.Second)))
	}
	right, wrong := a.reign(lease, asking.ByTerm, bound), a.reign(lease, asking.ByMemory, bound)
	victim := 0
	if a.Servers[victim] == a.leader() { // the others would have to notice its end first
		victim++
	}
	a.must(a.Servers[victim].Pause())
	right.succeeds(right.lines[victim], 2)
	wrong.succeeds(wrong.lines[victim], 2)
	wait.Until(t, "a leader that goes by memory is found out", func() bool { return wrong.book.Judge().Stale > 0 })
	a.must(a.Servers[victim].Resume())
	right.safe()
}
