package drivertest

import (
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
