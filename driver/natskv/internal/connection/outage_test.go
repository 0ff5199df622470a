package connection

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestOutage: an old failure does not count for the next one, and a new connection gets its own
// time.
func TestOutage(t *testing.T) { synctest.Test(t, outages) }

func outages(t *testing.T) {
	var o outage
	o.add(time.Now().Add(-time.Minute), false)
	if !tooLong(time.Time{}, o) || tooLong(time.Now(), o) {
		t.Errorf("for an old connection %v, for a new one %v", tooLong(time.Time{}, o), tooLong(time.Now(), o))
	}
	o.last = o.last.Add(-2 * nextOutage)
	o.add(time.Now(), false)
	if tooLong(time.Time{}, o) {
		t.Error("a failure of long ago counts")
	}
}
