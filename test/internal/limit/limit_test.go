package limit

import (
	"testing"
	"time"
)

// TestDeadline: waits end before package testing ends the process.
func TestDeadline(t *testing.T) {
	ours, limited := Deadline()
	theirs, ok := t.Deadline()
	if limited != ok {
		t.Fatalf("limited: %v, and package testing says %v", limited, ok)
	}
	if limited && !ours.Before(theirs) {
		t.Errorf("waits end at %v, the process at %v", ours, theirs)
	}
	if left := Left(); limited && left > time.Until(theirs) || !limited && left != time.Hour {
		t.Errorf("%v are left", left)
	}
}
