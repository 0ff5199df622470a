package mixed

import (
	"testing"
	"time"
)

// TestTimeWithoutLeader checks the table in docs/nats.md, for the worst case of each row.
func TestTimeWithoutLeader(t *testing.T) {
	const some = time.Second // for requests in flight
	led := func(f *fleet, p participant) { f.await(p.name()+" leads", fleetTTL, p.leads) }
	for _, c := range []struct {
		name    string
		handles bool
		story   func(f *fleet) participant // returns the next leader
		limit   time.Duration
	}{
		{"after an old one that crashed, a new one", false, func(f *fleet) participant {
			led(f, f.startOld(0, oldInterval))
			n := f.startNew(0)
			time.Sleep(2*oldInterval + time.Second)
			f.end(0, true)
			return n
		}, fleetTTL + fleetTTL/8*7 + some},
		{"after a new one that crashed, a new one", false, func(f *fleet) participant {
			led(f, f.startNew(0))
			n := f.startNew(1)
			time.Sleep(fleetTTL)
			f.end(3, true)
			return n
		}, fleetLease + some},
		{"after a new one that crashed, an old one", false, func(f *fleet) participant {
			led(f, f.startNew(0))
			o := f.startOld(0, oldInterval)
			time.Sleep(fleetTTL)
			f.end(3, true)
			return o
		}, fleetTTL + oldInterval + some},
		{"after a new one that resigned, a new one", false, func(f *fleet) participant {
			led(f, f.startNew(0))
			n := f.startNew(1)
			time.Sleep(fleetTTL)
			f.end(3, false)
			return n
		}, some},
		{"after a new one that resigned, an old one", false, func(f *fleet) participant {
			led(f, f.startNew(0))
			o := f.startOld(0, oldInterval)
			time.Sleep(fleetTTL)
			f.end(3, false)
			return o
		}, oldInterval + some},
		{"after a new one over a handle that resigned, an old one", true, func(f *fleet) participant {
			led(f, f.startNew(0))
			o := f.startOld(0, oldInterval)
			time.Sleep(fleetTTL)
			f.end(3, false)
			return o
		}, fleetTTL + oldInterval + some},
		{"after a new one over a handle that resigned, a new one", true, func(f *fleet) participant {
			led(f, f.startNew(0))
			n := f.startNew(1)
			time.Sleep(fleetTTL)
			f.end(3, false)
			return n
		}, some},
		{"after a deletion, a new one", false, func(f *fleet) participant {
			n := f.startNew(0)
			led(f, n)
			time.Sleep(fleetTTL)
			f.remove(true)
			f.await("the leader stops", some, func() bool { return !n.leads() })
			return n
		}, fleetTTL/8*7 + some},
		{"after the last one that was migrating, one without", false, func(f *fleet) participant {
			led(f, f.startOld(0, oldInterval))
			f.startNew(0)
			time.Sleep(time.Second)
			f.end(0, true)
			time.Sleep(fleetTTL + time.Second)
			f.end(3, true) // it has just written a vacant record
			return f.startOn(1, f.open(f.js))
		}, fleetTTL + some},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := inFleet(t, 1, conditions{calm: true, handles: c.handles}, func(f *fleet) {
				next := c.story(f)
				begun := time.Now()
				f.await(next.name()+" leads", c.limit, next.leads)
				t.Logf("%v of at most %v", time.Since(begun).Round(time.Millisecond), c.limit)
			})
			for _, fault := range r.faults {
				t.Error(fault)
			}
		})
	}
}
