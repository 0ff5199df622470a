package drivertest

import (
	"strings"

	"github.com/tenure-go/tenure/driver"
)

func keyCases() []testCase {
	return []testCase{
		{"keys are distinct", "elections that share a cell depose each other, or use each other's terms", keysApart},
		{"refused keys change no other cell", "a key that the store cannot hold must not be stored as another key", keysRefused},
	}
}

// similarKeys returns keys that a faulty adapter could confuse with base.
func similarKeys(base string) []string {
	return []string{
		base + "x",
		base[:len(base)-1],
		base + ".x",
		base + "/x",
		base + "/x/y",
		base + "-x",
		base + "_x",
		base + " x",
		base + "é",
		base + "%2Fx",
		base + "?x=1",
		base + "#x",
		base + "*",
		base + ".*",
		base + ".>",
		base + "/",
		base + ".",
		"/" + base,
		"../" + base,
		strings.ToUpper(base),
	}
}

// accepts reports whether the store can hold the key. A store that is not Bounded can hold any key.
func (t *trial) accepts(key string) bool {
	return driver.AbilitiesOf(t.Store).CheckKey(key) == nil
}

func keysApart(t *trial) {
	versions := map[string]driver.Version{}
	base := t.key("key")
	for _, key := range append(similarKeys(base), base) {
		if !t.accepts(key) {
			t.Logf("not held: %q", key)
			continue
		}
		versions[key] = t.create(key, []byte(key))
	}
	for key, v := range versions {
		t.requireValue(key, v, []byte(key))
	}
}

// keysRefused writes to refused keys. Such a write may fail, but must not change another cell.
func keysRefused(t *trial) {
	base := t.key("key")
	v := t.create(base, []byte(base))
	refused := 0
	for _, key := range append(similarKeys(base), "", ".", "..", "/", "*", ">", strings.Repeat("k", 1<<16)) {
		if t.accepts(key) {
			continue
		}
		refused++
		_, _ = t.swap(key, "", []byte("stray"))
		_, _ = t.swap(key, v, []byte("stray"))
	}
	if refused == 0 {
		t.Skipf("the store refuses no key")
	}
	t.requireValue(base, v, []byte(base))
}
