package kafka

import (
	"bytes"
	"testing"
	"time"

	"github.com/tenure-go/tenure/driver"
)

// TestLeaseAgainstRetention: where the log is rewritten in less time than some leases take, Inspect says so.
func TestLeaseAgainstRetention(t *testing.T) {
	t.Parallel()
	c := start(t)
	s := c.open(c.direct())
	began := time.Now()
	for range 3 {
		fill(t, s, 2048, bytes.Repeat([]byte("x"), 2048))
		time.Sleep(100 * time.Millisecond)
	}
	stays := time.Since(began) * (64 << 20) / (6144 * 2200) // about
	for lease, want := range map[time.Duration]driver.Severity{stays / 100: 0, stays / 5: driver.Warning, stays: driver.Unsafe} {
		found, err := s.Inspect(within(t), lease)
		if err != nil {
			t.Fatal(err)
		}
		var got driver.Severity
		for _, f := range found {
			if f.Setting == "retention.bytes" {
				got = f.Severity
				t.Log(f)
			}
		}
		if got != want {
			t.Errorf("a lease of %v where records stay for %v: %v, want %v", lease, stays, got, want)
		}
	}
}
