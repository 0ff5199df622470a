package drivertest

import (
	"context"
	"fmt"
	"time"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/internal/test/kit"
)

func absentCases() []testCase {
	return []testCase{
		{"absent key reads as an entry",
			"a candidate that finds no record writes one; after an error it would never do so", readAbsent},
		{"create from absent applies", "it is the first write of every election", createFromAbsent},
		{"second create conflicts", "two candidates that both found no record must not both lead", createTwice},
		{"empty version is never that of a live cell",
			"it means absent, so a writer that uses it must not overwrite a value", emptyOverLive},
		{"pristine is claimed once", "such a cell is claimed without waiting, so two claims are two leaders", pristineOnce},
		{"pristine ends with the first write",
			"after a record was removed its leader may still lead: a claim without waiting makes a second one",
			pristineAfterRemoval},
	}
}

func readAbsent(t *trial) {
	if e := t.read(t.key("absent")); !e.Absent() {
		t.Errorf("a fresh key holds %s", kit.Brief(e.Value))
	}
}

func createFromAbsent(t *trial) {
	key := t.key("create")
	v := t.create(key, []byte("first"))
	t.requireValue(key, v, []byte("first"))
}

func createTwice(t *trial) {
	key := t.key("create")
	absent := t.read(key).Version
	v := t.requireSwap(key, absent, []byte("first"))
	t.requireConflict(key, absent, []byte("second"))
	t.requireValue(key, v, []byte("first"))
}

func emptyOverLive(t *trial) {
	key := t.key("live")
	v := t.create(key, []byte("first"))
	t.requireConflict(key, "", []byte("second"))
	t.requireValue(key, v, []byte("first"))
}

// pristine returns a fresh key with the version that only a pristine cell has.
func (t *trial) pristine() (string, driver.Version) {
	t.Helper()
	key := t.key("pristine")
	e := t.read(key)
	if !e.Pristine {
		t.Skipf("the store does not say that a cell is pristine")
	}
	if !e.Absent() {
		t.Fatalf("%q is pristine and holds %s", key, kit.Brief(e.Value))
	}
	return key, e.Version
}

func pristineOnce(t *trial) {
	key, fresh := t.pristine()
	v := t.requireSwap(key, fresh, []byte("first"))
	t.requireConflict(key, fresh, []byte("second"))
	t.requireValue(key, v, []byte("first"))
}

func pristineAfterRemoval(t *trial) {
	key, fresh := t.pristine()
	if t.Delete == nil && t.Purge == nil {
		t.Skipf("the harness can neither delete nor purge")
	}
	t.create(key, []byte("first"))
	for _, remove := range t.removals() {
		remove(t, key)
		t.requireConflict(key, fresh, []byte("second"))
		// A stale read may still report pristine. It matters only that no such claim works.
		if e := t.read(key); e.Pristine {
			t.requireConflict(key, e.Version, []byte("third"))
		}
	}
}

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

func recreateCases() []testCase {
	return []testCase{
		{"recreated store has another history",
			"a version that recurs must not look like the state of the former store", recreated},
		{"no old version fits a recreated cell",
			"a delayed write to the former store must not replace the present value", recreatedThenRefuse},
	}
}

// recreate deletes and recreates the store, and waits until all clients read the empty store. It
// returns the entry that Store reads.
func (t *trial) recreate(key string) (now driver.Entry) {
	t.Helper()
	ctx, cancel := t.context()
	defer cancel()
	if err := t.Recreate(ctx); err != nil {
		t.Fatalf("the store is not recreated: %v", err)
	}
	for _, s := range []driver.Store{t.Peer, t.Store} {
		if s != nil {
			now = t.awaitEmpty(ctx, s, key)
		}
	}
	return now
}

// awaitEmpty waits until a client reads that the cell is absent. Before that, its calls may fail.
func (t *trial) awaitEmpty(ctx context.Context, s driver.Store, key string) (e driver.Entry) {
	t.Helper()
	var err error
	if !t.eventually(func() bool { e, err = s.Read(ctx, key); return err == nil && e.Absent() }) {
		t.Fatalf("a client does not read the recreated store: %d bytes, %v", len(e.Value), err)
	}
	return e
}

func (t *trial) skipWithoutRecreate() {
	t.Helper()
	if t.Recreate == nil {
		t.Skipf("the harness cannot recreate the store")
	}
}

// recreated requires that each version is new, or that its entry has another era.
func recreated(t *trial) {
	t.skipWithoutRecreate()
	key := t.key("recreate")
	former := map[driver.Version]bool{}
	v := t.read(key).Version
	for i := range t.Rounds {
		v = t.requireSwap(key, v, fmt.Appendf(nil, "former %d", i))
		former[v] = true
	}
	era := t.awaitState(key, "at its last version", func(e driver.Entry) bool { return e.Version == v }).Era
	e := t.recreate(key)
	t.requireOtherHistory(e, era, former)
	for i := range t.Rounds {
		value := fmt.Appendf(nil, "present %d", i)
		e = t.requireValue(key, t.requireSwap(key, e.Version, value), value)
		t.requireOtherHistory(e, era, former)
	}
}

// requireOtherHistory requires that the entry cannot be confused with one of the former store. The
// era is 0 in a store without eras.
func (t *trial) requireOtherHistory(e driver.Entry, era uint64, former map[driver.Version]bool) {
	t.Helper()
	if former[e.Version] && (e.Era == era || e.Era == 0) {
		t.Errorf("version %q recurs in the recreated store; its era is %d, and was %d", e.Version, e.Era, era)
	}
	if era != 0 && e.Era == 0 {
		t.Errorf("version %q of the recreated store has no era; the former store had %d", e.Version, era)
	}
}

// recreatedThenRefuse uses the version of a second write. Even if versions count writes, the first
// write after the recreation has another one.
func recreatedThenRefuse(t *trial) {
	t.skipWithoutRecreate()
	key := t.key("recreate")
	old := t.requireSwap(key, t.create(key, []byte("first")), []byte("second"))
	absent := t.recreate(key).Version
	t.requireConflict(key, old, []byte("late"))
	v := t.requireSwap(key, absent, []byte("third"))
	t.requireConflict(key, old, []byte("late"))
	t.requireValue(key, v, []byte("third"))
}

func floorCases() []testCase {
	return []testCase{
		{"floor is never below a term", "a claim takes the floor plus one, which must be above every earlier term",
			floorHolds(nil)},
		{"floor survives a delete",
			"the record with the last term is gone: the floor is all that keeps the next one above it", floorHolds((*trial).delete)},
		{"floor survives a purge",
			"the record with the last term is gone: the floor is all that keeps the next one above it", floorHolds((*trial).purge)},
	}
}

// floorHolds writes terms as elections do, each one above the floor and all earlier terms, and then
// checks the floor, also after a removal unless that is nil.
func floorHolds(remove removal) func(*trial) {
	return func(t *trial) {
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
