package natskv

import (
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// TestTimeWithoutLeader holds the table in docs/nats.md, for the worst case of each of its rows.
func TestTimeWithoutLeader(t *testing.T) {
	const some = time.Second // for what is under way
	led := func(f *fleet, p participant) { f.await(p.name()+" leads", fleetTTL, p.leads) }
	for _, c := range []struct {
		name    string
		handles bool
		story   func(f *fleet) participant // who is to lead next
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
			f.end(3, true) // it has just put a vacant record there
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

// TestMovingOverInRealTime is a migration, and half of the way back, with a server on a network and files.
func TestMovingOverInRealTime(t *testing.T) {
	long(t)
	t.Parallel()
	const ttl = 6 * time.Second
	s := startServer(t)
	dial := func() jetstream.JetStream { return newJetStream(t, connect(t, s.ClientURL())) }
	f := newFleet(t, 1, conditions{calm: true, lease: ttl / 3}, ttl, jetstream.FileStorage, dial)
	somebody := func() bool { _, p := f.leader(); return p != nil }
	for i := range 3 {
		f.startOld(i, time.Second)
	}
	f.await("an old one leads", patience, somebody)
	for i := range 3 {
		f.startNew(i)
		time.Sleep(time.Second)
		f.end(i, i == 0)
		f.await("somebody leads", 2*ttl+patience, somebody)
		if i == 1 { // the way back
			f.end(3, false)
			f.end(4, false)
			f.await("an old one leads", patience, f.at(2).leads)
			f.startNew(0)
			f.startNew(1)
		}
	}
	i, _ := f.leader()
	f.end(i, true)
	f.await("somebody leads", 2*ttl+patience, somebody)
	r := f.close()
	for _, fault := range r.faults {
		t.Error(fault)
	}
	t.Logf("%d times from old to new, %d back; nobody led for at most %v", r.oldToNew, r.newToOld, r.longest)
}
