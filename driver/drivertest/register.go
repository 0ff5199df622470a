package drivertest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/internal/test/kit"
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

// raceWriters is the number of writers in a race.
const raceWriters = 16

func raceCases() []testCase {
	return []testCase{
		{"one swap wins a race",
			"with a check followed by a write, two candidates can win, but only in a race", raceSwaps},
		{"one create wins a race", "a store that compares versions correctly may still create a cell twice", raceCreates},
		{"no update is lost",
			"of two writes from one version, at most one may be acknowledged", raceRegister},
	}
}

// attempt is the result of one write.
type attempt struct {
	value   []byte
	version driver.Version
	err     error
}

func (t *trial) race(key string, prev driver.Version, round int) []attempt {
	all := make([]attempt, raceWriters)
	together(raceWriters, func(i int) {
		ctx, cancel := t.context()
		defer cancel()
		a := &all[i]
		a.value = fmt.Appendf(nil, "round %d writer %d", round, i)
		a.version, a.err = t.writer(i).CompareAndSwap(ctx, key, prev, a.value)
	})
	return all
}

func raceSwaps(t *trial) {
	key := t.key("race")
	v, certain := t.create(key, []byte("start")), true
	for round := range t.Rounds {
		v, certain = t.settleRace(key, certain, t.race(key, v, round))
	}
}

func raceCreates(t *trial) {
	for round := range t.Rounds {
		key := t.key("race")
		t.settleRace(key, true, t.race(key, t.read(key).Version, round))
	}
}

// settleRace requires at most one winner and returns the version of the cell now. If certain is
// false, an unknown outcome may still change that version.
func (t *trial) settleRace(key string, certain bool, all []attempt) (driver.Version, bool) {
	t.Helper()
	var won []attempt
	unknown := 0
	for _, a := range all {
		switch {
		case a.err == nil:
			won = append(won, a)
		case !errors.Is(a.err, driver.ErrConflict):
			unknown++
		}
	}
	switch {
	case len(won) > 1:
		t.Fatalf("%d of %d writes to %q from one version were acknowledged", len(won), len(all), key)
	case len(won) == 1:
		t.requireValue(key, won[0].version, won[0].value)
		return won[0].version, true
	case unknown == 0 && certain:
		t.Fatalf("%d writes to %q from its version all conflicted: one of them must have been applied first", len(all), key)
	}
	t.Logf("no winner: %d of %d outcomes unknown", unknown, len(all))
	return t.read(key).Version, false
}

// raceRegister increments a number from many writers. No two acknowledged writes may have replaced
// the same version.
func raceRegister(t *trial) {
	key := t.key("register")
	t.create(key, []byte("0"))
	r := register{t: t, key: key, replaced: map[driver.Version]int{}}
	together(raceWriters, func(i int) {
		for range t.Rounds {
			r.increment(t.writer(i), i)
		}
	})
	acknowledged := 0
	for v, n := range r.replaced {
		acknowledged += n
		if n > 1 {
			t.Errorf("%d acknowledged writes to %q all replaced version %q", n, key, v)
		}
	}
	if acknowledged == 0 {
		t.Fatalf("none of %d writes to %q was acknowledged", raceWriters*t.Rounds, key)
	}
	t.awaitState(key, fmt.Sprintf("at %d", acknowledged), func(e driver.Entry) bool { return count(e) >= acknowledged })
}

type register struct {
	t   *trial
	key string

	mu       sync.Mutex
	replaced map[driver.Version]int
}

func (r *register) increment(s driver.Store, writer int) {
	ctx, cancel := r.t.context()
	defer cancel()
	e, err := s.Read(ctx, r.key)
	if err != nil {
		return
	}
	// The writer's name distinguishes versions that follow from the bytes.
	value := fmt.Appendf(nil, "%d\n%d", count(e)+1, writer)
	if _, err := s.CompareAndSwap(ctx, r.key, e.Version, value); err != nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.replaced[e.Version]++
}

func count(e driver.Entry) int {
	number, _, _ := bytes.Cut(e.Value, []byte("\n"))
	n, _ := strconv.Atoi(string(number))
	return n
}

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
	base := t.key("key")
	for key, v := range t.createEach(append(similarKeys(base), base)) {
		t.requireValue(key, v, []byte(key))
	}
}

// createEach writes each key into its cell, unless the store cannot hold the key, or not beside an
// earlier one. It returns the versions. A key that is not held beside another must read as a value
// that is neither its own nor the other's, and cannot be written.
func (t *trial) createEach(keys []string) map[string]driver.Version {
	t.Helper()
	versions := map[string]driver.Version{}
	for _, key := range keys {
		if !t.accepts(key) {
			t.Logf("not held: %q", key)
			continue
		}
		e := t.read(key)
		if e.Absent() || e.Notice == nil {
			versions[key] = t.requireSwap(key, e.Version, []byte(key))
			continue
		}
		t.Logf("not held beside another: %q: %v", key, e.Notice)
		if _, shared := versions[string(e.Value)]; shared || json.Valid(e.Value) {
			t.Errorf("%q shows %s, which may be the record of another key", key, kit.Brief(e.Value))
		}
		if v, err := t.swap(key, e.Version, []byte(key)); err == nil {
			t.Errorf("swap of %q, whose cell holds another key: applied as version %q", key, v)
		}
	}
	return versions
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

func valueCases() []testCase {
	return []testCase{
		{"values are kept byte for byte",
			"a changed record is foreign, so no candidate can lead any more", valuesExact},
		{"values are copied in and out",
			"otherwise a caller that reuses a buffer would change the record", valuesCopied},
	}
}

func valuesExact(t *trial) {
	key := t.key("values")
	v := t.read(key).Version
	for _, value := range values() {
		v = t.requireSwap(key, v, value)
		t.requireValue(key, v, value)
	}
}

func values() [][]byte {
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i)
	}
	return [][]byte{
		[]byte("x"),
		{0},
		[]byte(" "),
		[]byte("\n"),
		[]byte("null"),
		[]byte("{}"),
		[]byte(" leading and trailing \r\n"),
		[]byte(`{"b":1,"a":"Zürich ☕ 𝄞 \u00e9","b":2,"html":"<&>"}` + "\n"),
		[]byte("not UTF-8: \xff\xfe\xc3"),
		all,
		bytes.Repeat(all, driver.MaxValue/len(all))[1:],
		bytes.Repeat(all, driver.MaxValue/len(all)),
		bytes.Repeat([]byte{0xff}, driver.MaxValue),
		bytes.Repeat([]byte{0}, driver.MaxValue),
	}
}

func valuesCopied(t *trial) {
	key, want := t.key("values"), []byte("mine")
	buffer := bytes.Clone(want)
	v := t.create(key, buffer)
	copy(buffer, "XXXX")
	e := t.requireValue(key, v, want)
	copy(e.Value, "YYYY")
	t.requireValue(key, v, want)
}
