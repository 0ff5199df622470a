package fleet

import (
	"testing"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/memory"
)

// limited is a store that allows no long leases, like a NATS bucket with a short TTL.
type limited struct{ driver.Store }

func (limited) MinLease() time.Duration { return time.Second }
func (limited) MaxLease() time.Duration { return 40 * time.Second }
func (limited) CheckKey(string) error   { return nil }

// A change of the settings of a seat must not fail, or the seat is read too often or too rarely.
func TestSettingsOfSeatsAreValid(t *testing.T) {
	for name, store := range map[string]driver.Store{"any lease": memory.New(), "short leases": limited{memory.New()}} {
		f, err := New(store, "test", Config{})
		if err != nil {
			t.Fatal(err)
		}
		for pace, cfg := range f.seats.configs {
			if _, err := tenure.NewGroup(store, cfg); err != nil {
				t.Errorf("%s: pace %d: %v", name, pace, err)
			}
		}
	}
}
