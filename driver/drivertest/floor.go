package drivertest

import (
	"fmt"
	"time"

	"github.com/tenure-go/tenure/driver"
)

func floorCases() []testCase {
	return []testCase{
		{"floor is never below a term", "a claim one above it must be above every term that there was",
			func(t *trial) { t.floorHolds(nil) }},
		{"floor survives a delete",
			"the record with the last term is gone: the floor is all that keeps the next one above it", floorAfterDelete},
		{"floor survives a purge",
			"the record with the last term is gone: the floor is all that keeps the next one above it", floorAfterPurge},
	}
}

func floorAfterDelete(t *trial) {
	t.needs("delete", t.Delete)
	t.floorHolds((*trial).delete)
}

func floorAfterPurge(t *trial) {
	t.needs("purge", t.Purge)
	t.floorHolds((*trial).purge)
}

// floorHolds claims terms as elections do, one above the floor and every term before, and checks
// the floor afterwards.
func (t *trial) floorHolds(remove removal) {
	t.Helper()
	key := t.key("floor")
	top, v := t.claim(key)
	time.Sleep(t.FloorTick)
	e := t.settle(key, "at version "+string(v), func(e driver.Entry) bool { return e.Version == v })
	if e.Floor == 0 {
		t.Skipf("the store vouches for no floor")
	}
	t.above(e, top)
	if remove != nil {
		t.above(remove(t, key), top)
	}
}

// claim writes terms and returns the highest with its version. A stale floor is allowed here.
func (t *trial) claim(key string) (top uint64, v driver.Version) {
	t.Helper()
	v = t.read(key).Version
	for range t.Rounds {
		e := t.read(key)
		if t.FloorTick == 0 && e.Version == v {
			t.above(e, top)
		}
		top = max(top, e.Floor) + 1
		v = t.apply(key, v, fmt.Appendf(nil, "term %d", top))
	}
	return top, v
}

// above requires that the floor of an entry is not below a term that was written before.
func (t *trial) above(e driver.Entry, term uint64) {
	t.Helper()
	if e.Floor != 0 && e.Floor < term {
		t.Errorf("the floor is %d at version %q, after a term %d", e.Floor, e.Version, term)
	}
}
