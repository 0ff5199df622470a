package timing_test

import (
	"testing"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/memory"
	"github.com/tenure-go/tenure/timing"
)

// limited is a store with another shortest lease.
type limited struct {
	*memory.Store
	least time.Duration
}

func (l limited) MinLease() time.Duration { return l.least }

// TestShortestLease computes the rule by itself.
func TestShortestLease(t *testing.T) {
	fits := func(c tenure.Config, lease, took time.Duration) bool {
		c.Lease = lease
		full := c.WithDefaults()
		return (lease-timing.Margin(c)-full.Tuning.Renew)/2 >= took*5/2
	}
	for _, c := range []struct {
		why               string
		cfg               tenure.Config
		least, took, want time.Duration
	}{
		{"a fast store", tenure.Config{}, 50 * time.Millisecond, time.Millisecond, time.Second},
		{"the store's own limit", tenure.Config{}, 2 * time.Second, time.Millisecond, 2 * time.Second},
		{"a limit between seconds", tenure.Config{}, 2500 * time.Millisecond, time.Millisecond, 3 * time.Second},
		{"slow answers", tenure.Config{}, time.Second, 500 * time.Millisecond, 4 * time.Second},
		{"time to stop", tenure.Config{StopWithin: 5 * time.Second}, time.Second, 500 * time.Millisecond, 12 * time.Second},
		{"no lease is long enough", tenure.Config{}, time.Second, 20 * time.Minute, 0},
	} {
		got := timing.ShortestLease(c.cfg, limited{memory.New(), c.least}, c.took)
		if got != c.want {
			t.Errorf("%s: got %v, want %v", c.why, got, c.want)
		}
		if got != 0 && (!fits(c.cfg, got, c.took) || got-time.Second >= c.least && fits(c.cfg, got-time.Second, c.took)) {
			t.Errorf("%s: %v does not follow the rule", c.why, got)
		}
		if got == 0 && fits(c.cfg, driver.MaxLease, c.took) {
			t.Errorf("%s: the longest lease fits", c.why)
		}
	}
}
