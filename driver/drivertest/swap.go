package drivertest

import (
	"fmt"

	"github.com/tenure-go/tenure/driver"
)

func swapCases() []testCase {
	return []testCase{
		{"swap from the current version applies", "it is how a leader renews", swapCurrent},
		{"swap from an old version conflicts", "a former leader must not overwrite its successor", swapOld},
		{"swap from the version of another key conflicts",
			"a version must not fit a cell that it does not name", swapForeign},
		{"swap from an unknown version is not applied", "a version that names no state of the cell must not match one", swapUnknown},
		{"versions never recur",
			"a delayed write from an older state would be applied to a newer one", versionsUnique},
		{"the same bytes again are another version",
			"a delayed write from the first state would be applied to the third", versionsOfSameBytes},
	}
}

func swapCurrent(t *trial) {
	key := t.key("swap")
	v := t.create(key, []byte("0"))
	for i := range 3 {
		value := fmt.Appendf(nil, "%d", i+1)
		next := t.requireSwap(key, v, value)
		if next == v {
			t.Errorf("a write to %q left its version at %q", key, v)
		}
		v = next
		t.requireValue(key, v, value)
	}
}

func swapOld(t *trial) {
	key := t.key("swap")
	first := t.create(key, []byte("first"))
	second := t.requireSwap(key, first, []byte("second"))
	t.requireConflict(key, first, []byte("late"))
	third := t.requireSwap(key, second, []byte("third"))
	t.requireConflict(key, first, []byte("late"))
	t.requireConflict(key, second, []byte("late"))
	t.requireValue(key, third, []byte("third"))
}

// swapForeign writes the cell twice, so that versions that count the writes of a key differ too.
func swapForeign(t *trial) {
	key, other := t.key("swap"), t.key("other")
	v := t.requireSwap(key, t.create(key, []byte("first")), []byte("second"))
	foreign := t.create(other, []byte("other"))
	t.requireConflict(key, foreign, []byte("late"))
	t.requireValue(key, v, []byte("second"))
}

func swapUnknown(t *trial) {
	key := t.key("swap")
	v := t.create(key, []byte("first"))
	for _, unknown := range []driver.Version{"no version of this store", "18446744073709551615", v + "0"} {
		if got, err := t.swap(key, unknown, []byte("late")); err == nil {
			t.Errorf("swap of %q from version %q, which was never given out: applied as version %q", key, unknown, got)
		}
	}
	t.requireValue(key, v, []byte("first"))
}

func versionsUnique(t *trial) {
	key := t.key("versions")
	v := t.read(key).Version
	t.requireDistinct(key, v, 4*t.Rounds, func(i int) []byte { return fmt.Appendf(nil, "value %d", i) })
}

func versionsOfSameBytes(t *trial) {
	if t.ContentVersions {
		t.Skipf("versions follow from the bytes")
	}
	key := t.key("versions")
	v := t.read(key).Version
	t.requireDistinct(key, v, 6, func(i int) []byte { return []byte{"AB"[i%2]} })
}

// requireDistinct writes n times. It requires n different versions, and that only the last one can
// be swapped from.
func (t *trial) requireDistinct(key string, v driver.Version, n int, value func(i int) []byte) {
	t.Helper()
	seen := map[driver.Version]int{v: -1}
	for i := range n {
		v = t.requireSwap(key, v, value(i))
		if before, again := seen[v]; again {
			t.Fatalf("writes %d and %d to %q both have version %q", before, i, key, v)
		}
		seen[v] = i
	}
	delete(seen, v)
	for old := range seen {
		t.requireConflict(key, old, []byte("late"))
	}
}
