//go:build integration

package natstest

import (
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/tenure-go/tenure/driver/natskv"
	"github.com/tenure-go/tenure/internal/record"
	"github.com/tenure-go/tenure/internal/test/wait"
)

// TestWithoutOneRuleFleetsFail: the referee of TestRollingMigration finds the missing rule, too.
func TestWithoutOneRuleFleetsFail(t *testing.T) {
	if testing.Short() {
		t.Skip("one pass only, because of -short")
	}
	for name, spoiled := range map[string]natskv.Translator{
		"a shorter wait":    seen(isOld, func(r *record.Record) { r.Lease /= 2 }),
		"a shorter vacancy": seen(vacant, func(r *record.Record) { r.Lease = lease }),
	} {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(60) {
				if r := inFleet(t, seed, conditions{spoiled: spoiled}, (*fleet).migrate); len(r.Faults) > 0 {
					t.Logf("seed %d: %s", seed, r.Faults[0])
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
	// An old candidate that is held up for a quarter of the TTL still believes that it leads.
	f := newFleet(t, 1, conditions{calm: true}, jetstream.FileStorage, newWorld(t).modern)
	for i := range 3 {
		f.startOld(i, time.Second)
	}
	f.await("an old one leads", wait.Left(), f.anyLeads)
	for i := range 3 {
		f.startNew(i)
		time.Sleep(time.Second)
		f.End(i, i == 0)
		f.await("a candidate leads", wait.Left(), f.anyLeads)
		if i == 1 { // the way back
			f.End(3, false)
			f.End(4, false)
			f.await("an old one leads", wait.Left(), f.At(2).Leads)
			f.startNew(0)
			f.startNew(1)
		}
	}
	i, _ := f.Leader()
	f.End(i, true)
	f.await("a candidate leads", wait.Left(), f.anyLeads)
	r := f.Close()
	for _, fault := range r.Faults {
		t.Error(fault)
	}
	t.Log(r)
}
