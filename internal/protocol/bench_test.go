package protocol

import (
	"testing"
	"time"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/internal/record"
)

// BenchmarkNext measures a decision while there is nothing to do.
func BenchmarkNext(b *testing.B) {
	c := settings(15*time.Second, 0)
	candidate := New(&c, "i")
	candidate.Campaign(at(0), 0)
	other := record.Record{LeaderID: "o", Incarnation: "o1", Term: 7, Seq: 1, Nonce: "n", Lease: c.Lease}
	cell := Cell{Kind: Valid, Version: "v1", Record: other}
	candidate.ReadDone(at(0), candidate.Next(at(0)).Op.ID, cell, Applied, nil)
	for _, bench := range []struct {
		name string
		m    *Machine
	}{{"leader", leading(b, c)}, {"candidate", candidate}} {
		b.Run(bench.name, func(b *testing.B) {
			m := bench.m
			now := at(time.Second)
			m.Next(now) // reports the pending transitions
			b.ReportAllocs()
			for b.Loop() {
				if todo := m.Next(now); todo.Op != nil {
					b.Fatal("it has something to do")
				}
			}
		})
	}
}

// BenchmarkRenewal measures a renewal: the decision, the write, and its answer.
func BenchmarkRenewal(b *testing.B) {
	c := settings(15*time.Second, 0)
	m, now := leading(b, c), at(0)
	versions := [2]driver.Version{"v2", "v3"}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		now.Mono, now.Raw, now.Boot = now.Mono+c.Renew, now.Raw+c.Renew, now.Boot+c.Renew
		op := m.Next(now).Op
		if op == nil || !op.Write {
			b.Fatal("it does not renew")
		}
		m.WriteDone(now, op.ID, versions[i%2], Applied, nil)
	}
}
