package drivertest

import (
	"fmt"
	"time"

	"github.com/tenure-go/tenure/driver"
)

func floorCases() []testCase {
	return []testCase{
		{"floor is never below a term", "a claim takes the floor plus one, which must be above every earlier term",
			func(t *trial) { t.floorHolds(nil) }},
		{"floor survives a delete",
			"the record with the last term is gone: the floor is all that keeps the next one above it", floorAfterDelete},
		{"floor survives a purge",
			"the record with the last term is gone: the floor is all that keeps the next one above it", floorAfterPurge},
	}
}

func floorAfterDelete(t *trial) {
	t.skipWithout("delete", t.Delete)
	t.floorHolds((*trial).delete)
}

func floorAfterPurge(t *trial) {
	t.skipWithout("purge", t.Purge)
	t.floorHolds((*trial).purge)
}

// floorHolds writes terms as elections do, each one above the floor and all earlier terms, and then
// checks the floor.
func (t *trial) floorHolds(remove removal) {
	t.Helper()
	key := t.key("floor")
	top, v := t.claim(key)
	time.Sleep(t.FloorTick)
	e := t.awaitState(key, "at version "+string(v), func(e driver.Entry) bool { return e.Version == v })
	if e.Floor == 0 {
		t.Skipf("the store vouches for no floor")
	}
	t.requireFloor(e, top)
	if remove != nil {
		t.requireFloor(remove(t, key), top)
	}
}

// claim writes terms and returns the highest one with its version. Here a read may be stale, and so
// may its floor.
func (t *trial) claim(key string) (top uint64, v driver.Version) {
	t.Helper()
	v = t.read(key).Version
	for range t.Rounds {
		e := t.read(key)
		if t.FloorTick == 0 && e.Version == v {
			t.requireFloor(e, top)
		}
		top = max(top, e.Floor) + 1
		v = t.requireSwap(key, v, fmt.Appendf(nil, "term %d", top))
	}
	return top, v
}

// requireFloor requires that the floor of an entry is not below an earlier term.
func (t *trial) requireFloor(e driver.Entry, term uint64) {
	t.Helper()
	if e.Floor != 0 && e.Floor < term {
		t.Errorf("the floor is %d at version %q, after a term %d", e.Floor, e.Version, term)
	}
}
