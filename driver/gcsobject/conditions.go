package gcsobject

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/tenure-go/tenure/driver"
)

// probePrefix begins the names of a store's own objects: those of inspections, and the one on which
// it checks conditions.
const probePrefix = ".tenure-probe-"

// conditionsName is the name of the object on which a store checks conditions. It stays in the
// bucket: two checks at once must not take the absence of the object for a fault of the server.
const conditionsName = probePrefix + "conditions"

// conditionsText is the content of that object.
const conditionsText = `{"about":"Candidates of Tenure check on this object that the server refuses writes whose conditions are not met."}`

// noVersion is a generation that no object has.
const noVersion driver.Version = "1"

// conditions holds what a store knows about the treatment of conditions by its server.
type conditions struct {
	heeded atomic.Bool
	turn   chan struct{} // holds a value while a check is under way

	// Only the check under way uses these. They make it go on where an earlier one ended.
	creates bool   // the server heeds a generation of 0
	there   string // the key of an object that exists
}

func newConditions() conditions { return conditions{turn: make(chan struct{}, 1)} }

// requireConditions returns nil if the server heeds the conditions of writes. It checks that once
// in the life of a store, before the first write, with one check at a time.
func (s *Store) requireConditions(ctx context.Context, key string) error {
	c := &s.conditions
	if c.heeded.Load() {
		return nil
	}
	select {
	case c.turn <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { <-c.turn }()
	if c.heeded.Load() {
		return nil
	}
	err := s.checkConditions(ctx, folder(key)+conditionsName)
	c.heeded.Store(err == nil)
	return err
}

// checkConditions makes two writes that the server must refuse: one creates an object that exists,
// and one replaces a generation that the object never had. Checks of other processes do not disturb
// it, since none of them deletes the object.
func (s *Store) checkConditions(ctx context.Context, key string) error {
	c := &s.conditions
	for !c.creates || c.there != key {
		switch heeded, err := s.violate(ctx, key, ""); {
		case err != nil:
			return err
		case heeded:
			c.creates, c.there = true, key
		case c.there == key:
			return unfit("0", "an object is overwritten under the condition that it does not exist: two candidates can both "+
				"begin an election")
		default:
			c.there = key // it did not exist
		}
	}
	switch heeded, err := s.violate(ctx, key, noVersion); {
	case err != nil:
		return err
	case !heeded:
		return unfit("another one", "the server replaces an object although the condition names another generation: an old "+
			"leader overwrites the record of the new one")
	}
	return nil
}

// violate writes under a condition that an existing object does not meet. An error leaves open how
// the server treats it.
func (s *Store) violate(ctx context.Context, key string, prev driver.Version) (heeded bool, err error) {
	switch _, err := s.put(ctx, key, prev, []byte(conditionsText)); {
	case errors.Is(err, driver.ErrConflict):
		return true, nil
	case err == nil, errors.Is(err, errNoGeneration):
		return false, nil
	default:
		return false, fmt.Errorf("check, by a write to %s, that the server heeds conditions: %w", s.place(key), err)
	}
}

func unfit(value, problem string) error {
	return fmt.Errorf("%w: ifGenerationMatch of %s: %s; use Cloud Storage itself, or an emulator that heeds conditions",
		driver.ErrUnfit, value, problem)
}
