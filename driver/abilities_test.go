package driver_test

import (
	"maps"
	"testing"
	"time"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/internal/test/able"
)

// quiet is a wrapper that hides pushes.
type quiet struct{ driver.Store }

func (q quiet) Abilities() driver.Abilities {
	a := driver.AbilitiesOf(q.Store)
	a.Watcher, a.Peers = nil, nil
	return a
}

func TestAbilitiesOf(t *testing.T) {
	full := able.Answers(t.Context(), able.Store{})
	polled := maps.Clone(full)
	delete(polled, "Watcher")
	delete(polled, "Peers")
	for _, c := range []struct {
		name, why string
		store     driver.Store
		want      map[string]string
	}{
		{"every ability", "a store has what it implements", able.Store{}, full},
		{"none", "two methods are enough", &cells{}, nil},
		{"wrapped", "a wrapper keeps what it does not name, and hides what it will", quiet{quiet{able.Store{}}}, polled},
		{"wrapped by a stranger", "a store that names nothing may change anything", struct{ driver.Store }{able.Store{}}, nil},
	} {
		if got := able.Answers(t.Context(), c.store); !maps.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v: %s", c.name, got, c.want, c.why)
		}
	}
	if len(full) != 5 {
		t.Errorf("%d abilities answer: %v", len(full), full)
	}
}

func TestDefaultsOfAbilities(t *testing.T) {
	if a := driver.AbilitiesOf(&cells{}); a.MinLease() != time.Millisecond || a.MaxLease() != driver.MaxLease || a.CheckKey("") != nil || a.Pushes() {
		t.Errorf("bounds from nowhere: %+v", a)
	}
	if a := driver.AbilitiesOf(able.Store{}); a.MinLease() != 7*time.Second || a.MaxLease() != 9*time.Second || a.CheckKey("k") == nil || a.Pushes() {
		t.Errorf("bounds are lost, or members that push reach every member: %+v", a)
	}
}
