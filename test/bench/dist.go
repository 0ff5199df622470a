package main

import (
	"fmt"
	"math"
	"slices"
	"time"
)

// dist is a sample of durations.
type dist []time.Duration

// quantile is the smallest value that at least this part of the sample does not exceed.
func (d dist) quantile(q float64) time.Duration {
	if len(d) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(d))
	i := int(math.Ceil(q*float64(len(sorted)))) - 1
	return sorted[min(max(i, 0), len(sorted)-1)]
}

func (d dist) min() time.Duration    { return d.quantile(0) }
func (d dist) median() time.Duration { return d.quantile(0.5) }
func (d dist) p99() time.Duration    { return d.quantile(0.99) }
func (d dist) max() time.Duration    { return d.quantile(1) }

// above counts those that exceed a bound.
func (d dist) above(bound time.Duration) int {
	n := 0
	for _, x := range d {
		if x > bound {
			n++
		}
	}
	return n
}

// String is the four of them and the size.
func (d dist) String() string {
	return fmt.Sprintf("%s / %s / %s / %s, n=%d", show(d.min()), show(d.median()), show(d.p99()), show(d.max()), len(d))
}

// show is a duration with as many digits as it is worth.
func show(d time.Duration) string {
	switch a := d.Abs(); {
	case a >= 10*time.Second:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case a >= time.Second:
		return fmt.Sprintf("%.2f s", d.Seconds())
	case a >= 10*time.Millisecond:
		return fmt.Sprintf("%.0f ms", float64(d)/1e6)
	case a >= 100*time.Microsecond:
		return fmt.Sprintf("%.1f ms", float64(d)/1e6)
	}
	return fmt.Sprintf("%.0f us", float64(d)/1e3)
}
