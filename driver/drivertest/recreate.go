package drivertest

import (
	"context"
	"fmt"

	"github.com/tenure-go/tenure/driver"
)

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
