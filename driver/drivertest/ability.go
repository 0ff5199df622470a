package drivertest

import (
	"bytes"
	"errors"
	"slices"
	"time"

	"github.com/tenure-go/tenure/driver"
)

func abilityCases() []testCase {
	return []testCase{
		{"denied client learns that it is denied", "waiting does not help it: an operator must act, so the error must show it", denied},
		{"asking for the right to write writes nothing", "a standby asks while another candidate leads", rights},
		{"bounds are usable", "an election reads them before it starts and relies on them", bounds},
		{"the list has the keys with a value", "a dashboard shows all elections, and none that was deleted", lists},
		{"candidates answer when they are asked", "an operator wants to see who could take over, and none that has gone", presence},
		{"findings are complete", "an operator needs the setting, the problem and the remedy", findings},
	}
}

func denied(t *trial) {
	if t.Denied == nil {
		t.Skipf("the harness has no client without rights")
	}
	key := t.key("denied")
	v := t.create(key, []byte("first"))
	ctx, cancel := t.context()
	defer cancel()
	if _, err := t.Denied.Read(ctx, key); !errors.Is(err, driver.ErrDenied) {
		t.Errorf("a read without rights: %v; want one that wraps ErrDenied", err)
	}
	if _, err := t.Denied.CompareAndSwap(ctx, key, v, []byte("second")); !errors.Is(err, driver.ErrDenied) {
		t.Errorf("a swap without rights: %v; want one that wraps ErrDenied", err)
	}
	t.requireValue(key, v, []byte("first"))
}

func rights(t *trial) {
	r := t.inspector()
	held, absent := t.key("rights"), t.key("nothing")
	v := t.create(held, []byte("first"))
	ctx, cancel := t.context()
	defer cancel()
	for _, key := range []string{held, absent} {
		err := r.CheckRights(ctx, key)
		if errors.Is(err, errors.ErrUnsupported) {
			t.Skipf("the store cannot check rights: %v", err)
		}
		if err != nil {
			t.Errorf("a client with the right to write %q: %v", key, err)
		}
	}
	t.requireValue(held, v, []byte("first"))
	if e := t.read(absent); !e.Absent() {
		t.Errorf("after asking, %q holds %q", absent, e.Value)
	}
	if d := driver.AbilitiesOf(t.Denied).Inspector; d != nil {
		if err := d.CheckRights(ctx, held); !errors.Is(err, driver.ErrDenied) {
			t.Errorf("a client without rights: %v; want an error that wraps ErrDenied", err)
		}
	}
}

func bounds(t *trial) {
	b := driver.AbilitiesOf(t.Store).Bounded
	if b == nil {
		t.Skipf("the store is no driver.Bounded")
	}
	if least, most := b.MinLease(), b.MaxLease(); least <= 0 || least > most || most > driver.MaxLease {
		t.Errorf("leases from %v to %v; want more than 0, and at most %v", least, most, driver.MaxLease)
	}
	key := t.key("bounds")
	if err := b.CheckKey(key); err != nil {
		t.Errorf("key %q is refused: %v", key, err)
	}
}

func lists(t *trial) {
	l := t.inspector()
	held, absent := t.key("listed"), t.key("nothing")
	t.create(held, []byte("first"))
	t.awaitListed(l, held, true)
	all := t.awaitListed(l, absent, false)
	if !slices.IsSorted(all) || len(slices.Compact(slices.Clone(all))) != len(all) {
		t.Errorf("the list is not sorted, or has a key twice: %q", all)
	}
	for _, remove := range t.removals() {
		key := t.key("removed")
		t.create(key, []byte("first"))
		t.awaitListed(l, key, true)
		remove(t, key)
		t.awaitListed(l, key, false)
	}
}

// awaitListed waits until the list has a key, or has it no more, and returns the list.
func (t *trial) awaitListed(l driver.Inspector, key string, want bool) []string {
	t.Helper()
	ctx, cancel := t.context()
	defer cancel()
	var all []string
	var err error
	if _, err := l.Keys(ctx); errors.Is(err, errors.ErrUnsupported) {
		t.Skipf("the store cannot list its keys: %v", err)
	}
	if !t.eventually(func() bool { all, err = l.Keys(ctx); return err == nil && slices.Contains(all, key) == want }) {
		t.Fatalf("%q: listed should become %v; the error is %v, and the list is %q", key, want, err, all)
	}
	return all
}

func presence(t *trial) {
	p := driver.AbilitiesOf(t.Store).Presence
	if p == nil {
		t.Skipf("the store is no driver.Presence")
	}
	ctx, cancel := t.context()
	defer cancel()
	key, other := t.key("present"), t.key("elsewhere")
	announce := func(key, text string) (stop func()) {
		stop, err := p.Announce(ctx, key, func() []byte { return []byte(text) })
		if errors.Is(err, errors.ErrUnsupported) {
			t.Skipf("the store has no presence: %v", err)
		}
		if err != nil {
			t.Fatalf("announce %q: %v", key, err)
		}
		return stop
	}
	defer announce(other, "c")()
	first, second := announce(key, "a"), announce(key, "b")
	defer first()
	t.awaitPresent(p, key, "a b")
	second()
	second()
	t.awaitPresent(p, key, "a")
	first()
	t.awaitPresent(p, key, "")
	t.awaitPresent(p, other, "c")
}

// awaitPresent waits until these candidates answer.
func (t *trial) awaitPresent(p driver.Presence, key, want string) {
	t.Helper()
	ctx, cancel := t.context()
	defer cancel()
	var all [][]byte
	var err error
	there := func() bool {
		all, err = p.Candidates(ctx, key)
		slices.SortFunc(all, bytes.Compare)
		return err == nil && string(bytes.Join(all, []byte(" "))) == want
	}
	if !t.eventually(there) {
		t.Fatalf("%q: the candidates are %q, %v; want %q", key, all, err, want)
	}
}

// inspector returns the Inspector of the store; without one it skips the case.
func (t *trial) inspector() driver.Inspector {
	i := driver.AbilitiesOf(t.Store).Inspector
	if i == nil {
		t.Skipf("the store is no driver.Inspector")
	}
	return i
}

func findings(t *trial) {
	ctx, cancel := t.context()
	defer cancel()
	found, err := t.inspector().Inspect(ctx, 15*time.Second)
	if err != nil {
		t.Fatalf("inspect: %v", err)
	}
	for _, f := range found {
		if f.Severity < driver.Advice || f.Severity > driver.Unsafe || f.Setting == "" || f.Problem == "" || f.Remedy == "" {
			t.Errorf("a finding lacks something: %q", f)
		}
	}
}
