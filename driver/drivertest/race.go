package drivertest

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"sync"

	"github.com/tenure-go/tenure/driver"
)

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
