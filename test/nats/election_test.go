//go:build integration

package nats

import (
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/tenure-go/tenure/driver/natskv"
	"github.com/tenure-go/tenure/internal/test/wait"
	"github.com/tenure-go/tenure/test/internal/asking"
)

const (
	// long is a lease that every single fault of a server should leave alone, and away how long a
	// server is missing: longer than that, and than the others take to do without it.
	long = 20 * time.Second
	away = 22 * time.Second
	// gap is how long a leader of such a lease may be unable to write and leads on, whenever that
	// begins: the lease without its margin, two times from one renewal to the next less, and a
	// second for what the probe does not see.
	gap = 8 * time.Second
)

// TestLeadersOutliveFaults: a lease of 20 s outlives every single fault of a server, whatever that
// server was. How long the servers take to do without it is up to the machine, and measured by row
// r3-faults of test/bench. Here a leader must not be lost who could have written in time.
func TestLeadersOutliveFaults(t *testing.T) {
	soak(t)
	for _, f := range faults() {
		for whose, leads := range map[string]bool{"leader": true, "another": false} {
			t.Run(whose+" "+f.name, func(t *testing.T) {
				outlive(t, func(a *arena) {
					victim := a.leader()
					if !leads {
						victim = a.Others(victim)[0]
					}
					f.fall(a, victim)
					time.Sleep(away)
					f.rise(a, victim)
					a.whole()
				})
			})
		}
	}
	t.Run("rolling restart", func(t *testing.T) { outlive(t, (*arena).roll) })
}

// outlive requires that all leaders lead on who could write in time, and that somebody leads in the
// end.
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

// TestShortLeasesAreSafe: what a lease that is shorter than a fault does not outlive ends before
// the next leader comes.
func TestShortLeasesAreSafe(t *testing.T) {
	soak(t)
	for _, f := range faults() {
		t.Run("leader "+f.name, func(t *testing.T) {
			a := newArena(t)
			r := a.reign(2*time.Second, asking.ByTerm, a.open)
			victim := a.leader()
			f.fall(a, victim)
			time.Sleep(away / 2)
			f.rise(a, victim)
			a.whole()
			r.led()
			r.safe()
		})
	}
}

// TestServerIsFrozenUnderLeader: a leader that knows only the server that freezes is deposed in
// time, and one that goes by what it heard last is found out. The first half would prove nothing
// without the second.
func TestServerIsFrozenUnderLeader(t *testing.T) {
	const lease = 2 * time.Second
	a := newArena(t)
	bound := func(n int) *natskv.Store {
		return a.openOver(a.dial(a.Servers[n].URL(), nats.PingInterval(time.Second)))
	}
	right, wrong := a.reign(lease, asking.ByTerm, bound), a.reign(lease, asking.ByMemory, bound)
	victim := 0
	if a.Servers[victim] == a.leader() { // whose end the others would have to notice first
		victim++
	}
	a.must(a.Servers[victim].Pause())
	right.succeeds(right.lines[victim], 2)
	wrong.succeeds(wrong.lines[victim], 2)
	wait.Until(t, "a leader that goes by memory is found out", func() bool { return wrong.book.Judge().Stale > 0 })
	a.must(a.Servers[victim].Resume())
	right.safe()
}
