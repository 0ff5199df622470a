package watches_test

import (
	"slices"
	"testing"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/watches"
)

func TestSet(t *testing.T) {
	var set watches.Set
	var seen []string
	add := func(key, name string) *watches.Watch {
		w := watches.New(key, func(e driver.Entry) { seen = append(seen, name+" "+string(e.Value)); e.Value[0] = '!' })
		set.Put(w)
		return w
	}
	a, b, c := add("k", "a"), add("k", "b"), add("other", "c")
	before := set.Of("k")
	value := []byte("x")
	watches.Push(set.Of("k"), driver.Entry{Value: value})
	if !slices.Equal(seen, []string{"a x", "b x"}) || string(value) != "x" {
		t.Errorf("seen %q; the value is %q: each watch gets its own, in order, and no other key's", seen, value)
	}
	if !a.Stop() || a.Stop() {
		t.Error("a watch is to be removed once")
	}
	if set.Remove(a) || !set.Remove(c) || set.Empty() || !slices.Equal(set.Keys(), []string{"k"}) {
		t.Errorf("left: %q", set.Keys())
	}
	d := add("k", "d")
	if seen = nil; len(before) != 2 || len(set.All()) != 2 {
		t.Errorf("%d and %d watches", len(before), len(set.All()))
	}
	watches.Push(before, driver.Entry{Value: value})
	if !slices.Equal(seen, []string{"b x"}) {
		t.Errorf("seen %q by watches that were taken before: a is stopped, d came later", seen)
	}
	if set.Remove(b) || !set.Remove(d) || !set.Empty() || set.Remove(d) {
		t.Errorf("left: %q", set.Keys())
	}
	e := add("k", "e")
	if set.StopAll(); !set.Empty() || e.Stop() {
		t.Error("a watch goes on after the end of all")
	}
}
