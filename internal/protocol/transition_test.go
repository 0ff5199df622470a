package protocol

import (
	"testing"
	"time"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/internal/record"
)

// TestChangedMetadataIsANewLeader: observers are notified though the term is the same.
func TestChangedMetadataIsANewLeader(t *testing.T) {
	c := settings(15*time.Second, 0)
	m := New(&c, "i")
	m.Observe(true)
	shows := func(when time.Duration, seq uint64, zone string) []Transition {
		t.Helper()
		m.Tick(at(when))
		op := m.Next(at(when)).Op
		if op == nil {
			t.Fatalf("it does not read at %v", when)
		}
		m.ReadDone(at(when), op.ID, Cell{Kind: Valid, Version: driver.Version(zone), Record: record.Record{
			LeaderID: "b", Incarnation: "b1", Term: 3, Seq: seq, Nonce: zone, Lease: c.Lease, Metadata: map[string]string{"zone": zone},
		}}, Applied, nil)
		return m.Next(at(when)).Transitions
	}
	for i, zone := range []string{"east", "west"} {
		got := shows(time.Duration(i)*c.Lease/2, uint64(i)+1, zone)
		if len(got) != 1 || got[0].What != NewLeader || got[0].Leader.Metadata["zone"] != zone || got[0].OtherTerm != (i == 0) {
			t.Errorf("a leader in zone %q: %+v", zone, got)
		}
	}
}
