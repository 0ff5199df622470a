package main

import (
	"testing"
	"time"

	"github.com/tenure-go/tenure"
)

func TestFresh(t *testing.T) {
	now := time.Now()
	for _, c := range []struct {
		why   string
		r     tenure.Record
		fresh bool
	}{
		{"renewed a moment ago", tenure.Record{Lease: time.Second, Updated: now.Add(-900 * time.Millisecond)}, true},
		{"a clock that is ahead", tenure.Record{Lease: time.Second, Updated: now.Add(900 * time.Millisecond)}, true},
		{"a lease ago", tenure.Record{Lease: time.Second, Updated: now.Add(-time.Second)}, false},
		{"far ahead", tenure.Record{Lease: time.Second, Updated: now.Add(time.Second)}, false},
		{"never", tenure.Record{Lease: time.Second}, false},
	} {
		if fresh(c.r, now) != c.fresh {
			t.Error(c.why)
		}
	}
}
