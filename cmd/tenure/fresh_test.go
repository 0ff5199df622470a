package main

import (
	"testing"
	"time"

	"github.com/tenure-go/tenure/admin"
)

func TestFresh(t *testing.T) {
	now := time.Now()
	for _, c := range []struct {
		why   string
		r     admin.Record
		fresh bool
	}{
		{"renewed a moment ago", admin.Record{Lease: time.Second, Updated: now.Add(-900 * time.Millisecond)}, true},
		{"a clock that is ahead", admin.Record{Lease: time.Second, Updated: now.Add(900 * time.Millisecond)}, true},
		{"a lease ago", admin.Record{Lease: time.Second, Updated: now.Add(-time.Second)}, false},
		{"far ahead", admin.Record{Lease: time.Second, Updated: now.Add(time.Second)}, false},
		{"never", admin.Record{Lease: time.Second}, false},
	} {
		if fresh(c.r, now) != c.fresh {
			t.Error(c.why)
		}
	}
}
