package drivertest

import (
	"context"
	"fmt"

	"github.com/tenure-go/tenure/driver"
)

func recreateCases() []testCase {
	return []testCase{
		{"recreated store has another history",
			"a version of the former store that recurs must not look like the state that a member knows", recreated},
		{"no old version fits a recreated cell",
			"a write that was delayed since the former store must not replace what is there now", recreatedThenRefuse},
	}
}

// recreate deletes the store and recreates it, and waits until all clients read the empty one. It
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
			now = t.emptied(ctx, s, key)
		}
	}
	return now
}

// emptied waits until a client reads that the cell is absent. Until then its calls may fail.
func (t *trial) emptied(ctx context.Context, s driver.Store, key string) (e driver.Entry) {
	t.Helper()
	var err error
	if !t.eventually(func() bool { e, err = s.Read(ctx, key); return err == nil && e.Absent() }) {
		t.Fatalf("a client does not read the recreated store: %d bytes, %v", len(e.Value), err)
	}
	return e
}

func (t *trial) needsRecreate() {
	t.Helper()
	if t.Recreate == nil {
		t.Skipf("the harness cannot recreate the store")
	}
}

// recreated requires of each version that it is a new one, or that its entry has another era.
func recreated(t *trial) {
	t.needsRecreate()
	key := t.key("recreate")
	former := map[driver.Version]bool{}
	v := t.read(key).Version
	for i := range t.Rounds {
		v = t.apply(key, v, fmt.Appendf(nil, "former %d", i))
		former[v] = true
	}
	era := t.settle(key, "at its last version", func(e driver.Entry) bool { return e.Version == v }).Era
	e := t.recreate(key)
	t.another(e, era, former)
	for i := range t.Rounds {
		value := fmt.Appendf(nil, "present %d", i)
		e = t.holds(key, t.apply(key, e.Version, value), value)
		t.another(e, era, former)
	}
}

// another requires that an entry is not taken for one of the former store. A store without eras has
// 0.
func (t *trial) another(e driver.Entry, era uint64, former map[driver.Version]bool) {
	t.Helper()
	if former[e.Version] && (e.Era == era || e.Era == 0) {
		t.Errorf("version %q recurs in the recreated store; its era is %d, and was %d", e.Version, e.Era, era)
	}
	if era != 0 && e.Era == 0 {
		t.Errorf("version %q of the recreated store has no era; the former store had %d", e.Version, era)
	}
}

// recreatedThenRefuse takes the version of the second write, which the first of the recreated store
// does not have, also where versions count the writes.
func recreatedThenRefuse(t *trial) {
	t.needsRecreate()
	key := t.key("recreate")
	old := t.apply(key, t.create(key, []byte("first")), []byte("second"))
	absent := t.recreate(key).Version
	t.refuse(key, old, []byte("late"))
	v := t.apply(key, absent, []byte("third"))
	t.refuse(key, old, []byte("late"))
	t.holds(key, v, []byte("third"))
}
