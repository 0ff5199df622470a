package main

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"
)

// TestLastingGoesOn: a second run goes on after the seeds of the first, and its total has both.
func TestLastingGoesOn(t *testing.T) {
	file := filepath.Join(t.TempDir(), "parts")
	o := options{within: 1, into: file, cfg: standardHour}
	var out bytes.Buffer
	for range 2 {
		out.Reset()
		o.lasting(3, &out)
	}
	parts, err := readParts(file)
	if err != nil || len(parts) != 2 || parts[1].From != 4 {
		t.Errorf("the parts are %+v, %v", parts, err)
	}
	if want := "6 seeds,"; !strings.HasPrefix(out.String(), want) {
		t.Errorf("the total is %q, want it to begin with %q", &out, want)
	}
}

// TestReportNamesFailedSeeds: a seed that failed in an earlier run is reported by each later one.
func TestReportNamesFailedSeeds(t *testing.T) {
	parts := []part{{From: 1, Seeds: 10, Failed: 2, First: 3, Fault: "two at work"}, {From: 11, Seeds: 10}}
	err := report(&bytes.Buffer{}, parts, standardHour)
	if err == nil || !strings.Contains(err.Error(), "seed 3: two at work") {
		t.Errorf("report: %v", err)
	}
}
