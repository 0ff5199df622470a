package kafka

import (
	"bytes"
	"testing"
	"time"

	"github.com/tenure-go/tenure/driver"
)

// TestLeaseAgainstRetention: Inspect reports a log that is overwritten in less time than the length
// of some leases.
func TestLeaseAgainstRetention(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, c *cluster) {
		s := c.open(c.direct(), ample)
		for range 2 {
			fill(t, s, 1024, bytes.Repeat([]byte("x"), 2048))
			time.Sleep(20 * time.Millisecond)
		}
		all := c.records()
		// A late reader can tell no more.
		took := all[len(all)-1].Timestamp.Sub(all[0].Timestamp)
		stays := took * (64 << 20) / time.Duration(len(all)*(2048+150)) // about
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
	})
}
