package drivertest

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"sync"

	"github.com/tenure-go/tenure/driver"
)

// racers is how many writers there are in a race.
const racers = 16

func raceCases() []testCase {
	return []testCase{
		{"one swap wins a race",
			"a check that is followed by a write lets two candidates win, though never one at a time", raceSwaps},
		{"one create wins a race", "stores that compare versions well may still create twice", raceCreates},
		{"no update is lost",
			"of two writes from one version at most one may be acknowledged, however they meet", raceRegister},
	}
}

// attempt is the result of one write.
type attempt struct {
	value   []byte
	version driver.Version
	err     error
}

func (t *trial) race(key string, prev driver.Version, round int) []attempt {
	all := make([]attempt, racers)
	together(racers, func(i int) {
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

// settleRace requires one winner and returns the version that the cell has now. If not certain, the
// cell may have another one.
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
		t.holds(key, won[0].version, won[0].value)
		return won[0].version, true
	case unknown == 0 && certain:
		t.Fatalf("%d writes to %q from its version all conflicted: one of them must have been applied first", len(all), key)
	}
	t.Logf("no winner: %d of %d outcomes unknown", unknown, len(all))
	return t.read(key).Version, false
}

// raceRegister counts up from many clients. Every acknowledged write must have replaced a version
// of its own.
func raceRegister(t *trial) {
	key := t.key("register")
	t.create(key, []byte("0"))
	r := register{t: t, key: key, replaced: map[driver.Version]int{}}
	together(racers, func(i int) {
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
		t.Fatalf("none of %d writes to %q was acknowledged", racers*t.Rounds, key)
	}
	t.settle(key, fmt.Sprintf("at %d", acknowledged), func(e driver.Entry) bool { return count(e) >= acknowledged })
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
