//go:build integration

package mixed

import (
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/tenure-go/tenure/compat/nats-kv-leader-elect/internal/inprocess"
	"github.com/tenure-go/tenure/driver/natskv"
	"github.com/tenure-go/tenure/internal/test/wait"
)

// TestWithoutOneRuleFleetsFail: the referee of TestRollingMigration finds the missing rule, too.
func TestWithoutOneRuleFleetsFail(t *testing.T) {
	if testing.Short() {
		t.Skip("one pass only, because of -short")
	}
	for name, spoiled := range map[string]natskv.Translator{
		"a shorter wait":    seen(isOld, func(r *fields) { r.LeaseMillis /= 2 }),
		"a shorter vacancy": seen(fields.vacant, func(r *fields) { r.LeaseMillis = millis(fleetLease) }),
	} {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(60) {
				if r := inFleet(t, seed, conditions{spoiled: spoiled}, (*fleet).migrate); len(r.faults) > 0 {
					t.Logf("seed %d: %s", seed, r.faults[0])
					return
				}
			}
			t.Error("no fault in 60 fleets")
		})
	}
}

// TestMigrationInRealTime migrates, and then half of the way back, with a server on a network and
// files.
func TestMigrationInRealTime(t *testing.T) {
	if testing.Short() {
		t.Skip("one pass only, because of -short")
	}
	t.Parallel()
	// An old candidate that is held up for a quarter of that still believes that it leads.
	const ttl = 30 * time.Second
	s := inprocess.Start(t, &server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT})
	dial := func() jetstream.JetStream {
		nc, err := nats.Connect(s.ClientURL())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(nc.Close)
		return newJetStream(t, nc)
	}
	f := newFleet(t, 1, conditions{calm: true, lease: ttl / 3}, ttl, jetstream.FileStorage, dial)
	anyLeads := func() bool { _, p := f.leader(); return p != nil }
	for i := range 3 {
		f.startOld(i, time.Second)
	}
	f.await("an old one leads", wait.Left(), anyLeads)
	for i := range 3 {
		f.startNew(i)
		time.Sleep(time.Second)
		f.end(i, i == 0)
		f.await("a candidate leads", wait.Left(), anyLeads)
		if i == 1 { // the way back
			f.end(3, false)
			f.end(4, false)
			f.await("an old one leads", wait.Left(), f.at(2).leads)
			f.startNew(0)
			f.startNew(1)
		}
	}
	i, _ := f.leader()
	f.end(i, true)
	f.await("a candidate leads", wait.Left(), anyLeads)
	r := f.close()
	for _, fault := range r.faults {
		t.Error(fault)
	}
	t.Logf("%d times from old to new, %d back; no leader for at most %v", r.oldToNew, r.newToOld, r.longest)
}
