package drivertest

import (
	"context"

	"github.com/tenure-go/tenure/driver"
)

func removeCases() []testCase {
	return []testCase{
		{"deleted cell is absent and can be claimed again",
			"deleting the record is how operators force a new leader", removeThenCreate((*trial).delete)},
		{"purged cell is absent and can be claimed again",
			"an expired or purged record must not end the election for good", removeThenCreate((*trial).purge)},
		{"no old version fits a deleted cell",
			"a leader whose record was deleted must learn of it, not write on", removeThenRefuse((*trial).delete)},
		{"no old version fits a purged cell",
			"a leader whose record was purged must learn of it, not write on", removeThenRefuse((*trial).purge)},
		{"empty version over a delete marker loses nothing",
			"a store may accept or refuse this, but its answer must be true", emptyOverMarker},
	}
}

// removal removes a cell and returns the absent entry.
type removal func(t *trial, key string) driver.Entry

func (t *trial) delete(key string) driver.Entry {
	t.Helper()
	return t.remove("delete", t.Delete, key)
}

func (t *trial) purge(key string) driver.Entry {
	t.Helper()
	return t.remove("purge", t.Purge, key)
}

// removals returns the ways to remove a cell that the harness has.
func (t *trial) removals() []removal {
	var all []removal
	if t.Delete != nil {
		all = append(all, (*trial).delete)
	}
	if t.Purge != nil {
		all = append(all, (*trial).purge)
	}
	return all
}

// skipWithout skips the case if the harness lacks this way to remove a cell.
func (t *trial) skipWithout(name string, do func(context.Context, string) error) {
	t.Helper()
	if do == nil {
		t.Skipf("the harness cannot %s", name)
	}
}

func (t *trial) remove(name string, do func(context.Context, string) error, key string) driver.Entry {
	t.Helper()
	t.skipWithout(name, do)
	ctx, cancel := t.context()
	defer cancel()
	if err := do(ctx, key); err != nil {
		t.Fatalf("%s of %q: %v", name, key, err)
	}
	return t.awaitState(key, "absent", driver.Entry.Absent)
}

func removeThenCreate(remove removal) func(*trial) {
	return func(t *trial) {
		key := t.key("remove")
		first := t.create(key, []byte("first"))
		absent := remove(t, key).Version
		second := t.requireSwap(key, absent, []byte("second"))
		if second == first {
			t.Errorf("the write after the removal has version %q again", first)
		}
		t.requireValue(key, second, []byte("second"))
		t.requireConflict(key, absent, []byte("third"))
	}
}

func removeThenRefuse(remove removal) func(*trial) {
	return func(t *trial) {
		key := t.key("remove")
		first := t.create(key, []byte("first"))
		second := t.requireSwap(key, first, []byte("second"))
		remove(t, key)
		t.requireConflict(key, first, []byte("late"))
		t.requireConflict(key, second, []byte("late"))
		t.awaitState(key, "absent still", driver.Entry.Absent)
	}
}

func emptyOverMarker(t *trial) {
	key := t.key("marker")
	t.create(key, []byte("first"))
	t.delete(key)
	if v, err := t.swap(key, "", []byte("second")); err == nil {
		t.requireValue(key, v, []byte("second"))
	} else {
		t.awaitState(key, "absent still", driver.Entry.Absent)
	}
}
