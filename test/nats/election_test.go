package nats

import (
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/tenure-go/tenure/driver/natskv"
	"github.com/tenure-go/tenure/test/internal/asking"
	"github.com/tenure-go/tenure/test/internal/natsd"
)

// away is how long a server is missing: longer than a lease of 20 s, and than the others take to do without it.
const away = 22 * time.Second

// TestLeadersOutliveFaults: a lease of 20 s outlives every single fault of a server, whatever that server was.
func TestLeadersOutliveFaults(t *testing.T) {
	natsd.Long(t)
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

// outlive requires that all leaders lead on. The servers elect among themselves by chance: where the machine is held up while
// they do, they may need longer than a lease. So they have three tries.
func outlive(t *testing.T, happen func(*arena)) {
	t.Helper()
	for range 3 {
		a := newArena(t)
		r := a.reign(20*time.Second, asking.ByTerm, a.open)
		happen(a)
		if r.keeps() {
			return
		}
	}
	t.Error("no lease of 20 s has outlived it")
}

// TestShortLeasesAreSafe: what a lease that is shorter than a fault does not outlive ends before the next leader comes.
func TestShortLeasesAreSafe(t *testing.T) {
	natsd.Long(t)
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

// TestServerIsFrozenUnderLeader: a leader that knows only the server that freezes is deposed in time, and one that goes by what it
// heard last is found out. The first half would prove nothing without the second.
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
	time.Sleep(lease / 4)
	a.must(a.Servers[victim].Resume())
	right.safe()
	if v := wrong.judge(); v.Stale == 0 {
		t.Error("a leader that goes by memory was not found out")
	}
}
