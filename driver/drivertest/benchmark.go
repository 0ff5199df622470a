package drivertest

import (
	"bytes"
	"testing"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/internal/test/kit"
)

// recordSize is about the size of an election's record in bytes.
const recordSize = 320

// Benchmark measures the store, one call at a time, with values of the size of an election's
// record. Each part is a sub-benchmark with a harness of its own from open. Package electiontest
// measures elections over the store.
func Benchmark(b *testing.B, open func(t testing.TB) Harness) {
	for _, part := range []struct {
		name string
		run  func(*testing.B, Harness)
	}{
		{"Read", benchmarkRead},
		{"CompareAndSwap", benchmarkSwap},
	} {
		b.Run(part.name, func(b *testing.B) {
			h := open(b)
			b.ReportAllocs()
			part.run(b, h)
		})
	}
}

func benchmarkRead(b *testing.B, h Harness) {
	t := newTrial(b, h, kit.RealTime(b))
	key := t.key("bench")
	v := t.create(key, bytes.Repeat([]byte("r"), recordSize))
	t.awaitState(key, "written", func(e driver.Entry) bool { return e.Version == v })
	for b.Loop() {
		if _, err := h.Store.Read(b.Context(), key); err != nil {
			b.Fatal(err)
		}
	}
}

func benchmarkSwap(b *testing.B, h Harness) {
	t := newTrial(b, h, kit.RealTime(b))
	key, value := t.key("bench"), bytes.Repeat([]byte("r"), recordSize)
	v := t.create(key, value)
	for n := uint64(0); b.Loop(); n++ {
		for i := range 8 { // no two values alike
			value[i] = byte(n >> (8 * i))
		}
		next, err := h.Store.CompareAndSwap(b.Context(), key, v, value)
		if err != nil {
			b.Fatal(err)
		}
		v = next
	}
}
