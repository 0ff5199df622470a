package s3object

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/tenure-go/tenure/driver"
)

// conditionsName is the name of the object on which a store checks conditions. It stays in the
// bucket: two checks at once must not take the absence of the object for a fault of the server.
const conditionsName = probePrefix + "conditions"

// conditionsKey returns the key of that object, in the folder of an election, so that the rights to
// the folder are enough.
func conditionsKey(key string) string {
	return folder(key) + conditionsName
}

// conditionsText is the content of that object.
const conditionsText = `{"about":"Candidates of Tenure check on this object that the server refuses writes whose conditions are not met."}`

// noVersion is an ETag that no object has. It has the form of an MD5 sum, because a server may
// ignore ETags that it does not understand.
const noVersion driver.Version = "00000000000000000000000000000000"

// conditions holds what a store knows about the treatment of conditions by its server.
type conditions struct {
	mu     sync.Mutex
	heeded bool            // the server refuses the writes that it should: nothing is left to check
	check  *conditionCheck // the one under way

	// Only the check under way uses these. They make it go on where an earlier one ended, so that
	// one request in each call is enough.
	creates bool   // the server heeds If-None-Match
	there   string // the key of an object that exists
}

// conditionCheck is one check of conditions. The calls that wait for it take its result.
type conditionCheck struct {
	key  string
	done chan struct{}
	err  error // set before done is closed
	// gaveUp: the call that made the check ended, so the result is none.
	gaveUp bool
}

// requireConditions returns nil if the server heeds the conditions of writes. It checks that once
// in the life of a store, before the first write. The check is a part of the call that makes it.
// Other calls wait for its result, as long as their contexts last.
func (s *Store) requireConditions(ctx context.Context, key string) error {
	key = conditionsKey(key)
	for {
		c, mine := s.conditions.join(key)
		switch {
		case c == nil:
			return nil
		case mine:
			s.conditions.finish(c, s.checkConditions(ctx, key), ctx.Err() != nil)
			return c.err
		}
		select {
		case <-c.done:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if c.err != nil && !c.gaveUp && c.key == key {
			return c.err
		}
	}
}

// join returns the check under way, or a new one, which the caller must make; nil if none is
// needed.
func (c *conditions) join(key string) (current *conditionCheck, mine bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.heeded {
		return nil, false
	}
	if c.check == nil {
		c.check, mine = &conditionCheck{key: key, done: make(chan struct{})}, true
	}
	return c.check, mine
}

func (c *conditions) finish(own *conditionCheck, err error, gaveUp bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	own.err, own.gaveUp = err, gaveUp
	c.heeded, c.check = err == nil, nil
	close(own.done)
}

// checkConditions makes two writes that the server must refuse: one creates an object that exists,
// and one replaces a version that the object never had. Checks of other processes do not disturb
// it, since none of them deletes the object.
func (s *Store) checkConditions(ctx context.Context, key string) error {
	c := &s.conditions
	for !c.creates || c.there != key {
		result, err := s.violate(ctx, key, condition{})
		switch {
		case result == unclear:
			return s.unchecked(key, err)
		case result == heeded:
			c.creates, c.there = true, key
		case c.there == key:
			return unfit("If-None-Match", overwrites, anotherServer+notVersioned)
		default:
			c.there = key // it did not exist
		}
	}
	switch result, err := s.violate(ctx, key, condition{noVersion, s.form.isBare()}); result {
	case unclear:
		return s.unchecked(key, err)
	case ignored:
		return unfit("If-Match", replaces, anotherServer)
	}
	return nil
}

// violate writes under a condition that the object should not meet. The object must exist, unless
// the condition is that it does not: a server may refuse every other condition on a missing object,
// and still ignore those that it does not understand.
func (s *Store) violate(ctx context.Context, key string, c condition) (treatment, error) {
	_, err := s.put(ctx, key, c, []byte(conditionsText))
	switch a := look(err); {
	case err == nil, errors.Is(err, errNoETag):
		return ignored, nil
	case a.unmet(), c.prev != "" && a.missing():
		return heeded, nil
	}
	return unclear, err
}

func (s *Store) unchecked(key string, err error) error {
	return fmt.Errorf("check, by a write to %s, that the server heeds conditions: %w", s.place(key), s.explain(checking, err))
}

func unfit(header, problem, remedy string) error {
	return fmt.Errorf("%w: %s: %s; %s", driver.ErrUnfit, header, problem, remedy)
}
