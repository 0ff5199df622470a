package protocol

import (
	"testing"
	"time"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/internal/record"
)

// Members that read at the same time draw new intervals at each read, from 90 to 110 %, so that
// they soon read at different times.
func TestIntervalsBetweenReadsAreDrawn(t *testing.T) {
	var drawn uint64
	c := settings(15*time.Second, 0)
	c.Rand = func() uint64 { return drawn }
	m := New(&c, "i")
	m.Observe(true)
	var now time.Duration
	for seq, want := range map[uint64]time.Duration{0: c.Poll * 9 / 10, 255: c.Poll * 11 / 10} {
		drawn = seq
		m.Tick(at(now))
		op := m.Next(at(now)).Op
		if op == nil {
			t.Fatalf("it does not read at %v", now)
		}
		m.ReadDone(at(now), op.ID, Cell{Version: driver.Version("v"), Kind: Valid, Record: record.Record{
			LeaderID: "b", Incarnation: "b1", Term: seq + 1, Seq: 1, Nonce: "x", Lease: c.Lease,
		}}, Applied, nil)
		got := m.Next(at(now)).Wake
		if d := got - want; d < -want/100 || d > want/100 {
			t.Errorf("after %d was drawn the next read is due after %v, not %v", drawn, got, want)
		}
		now += got
	}
}
