package drivertest

import (
	"strings"

	"github.com/tenure-go/tenure/driver"
)

func keyCases() []testCase {
	return []testCase{
		{"keys are apart", "elections that share a cell depose each other, or lead with each other's terms", keysApart},
		{"refused keys harm nobody", "a key that the store cannot hold must not end up as another's", keysRefused},
	}
}

// kin are keys that a careless adapter confuses with base.
func kin(base string) []string {
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

// accepts reports whether the store can hold the key. A store that is not Bounded can hold any.
func (t *trial) accepts(key string) bool {
	b, ok := t.Store.(driver.Bounded)
	return !ok || b.CheckKey(key) == nil
}

func keysApart(t *trial) {
	versions := map[string]driver.Version{}
	base := t.key("key")
	for _, key := range append(kin(base), base) {
		if !t.accepts(key) {
			t.Logf("not held: %q", key)
			continue
		}
		versions[key] = t.create(key, []byte(key))
	}
	for key, v := range versions {
		t.holds(key, v, []byte(key))
	}
}

// keysRefused still writes to them. The store decides whether that fails.
func keysRefused(t *trial) {
	base := t.key("key")
	v := t.create(base, []byte(base))
	refused := 0
	for _, key := range append(kin(base), "", ".", "..", "/", "*", ">", strings.Repeat("k", 1<<16)) {
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
	t.holds(base, v, []byte(base))
}
