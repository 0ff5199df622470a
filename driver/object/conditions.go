package object

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/tenure-go/tenure/driver"
)

// ConditionsName is the last part of the name of the object on which a store checks conditions. It
// stays there: two checks at once must not take the absence of the object for a fault of the
// server.
const ConditionsName = ProbePrefix + "conditions"

// ConditionsText is the content of that object.
const ConditionsText = `{"about":"Candidates of Tenure check on this object that the server refuses writes whose conditions are not met."}`

// ErrNoVersion is wrapped by the error of a write that was applied, but whose version the answer
// does not name. It leaves the outcome open for elections.
var ErrNoVersion = errors.New("the answer does not name the version")

// Conditions checks once in the life of a store, before its first write, that the server heeds the
// conditions of writes. It must be made by NewConditions.
type Conditions struct {
	check  Check
	heeded atomic.Bool
	turn   chan struct{} // holds a value while a check is under way

	// Only the check under way uses these. They make it go on where an earlier one ended.
	creates bool   // the server heeds the condition of a creation
	there   string // the key of an object that exists
}

// Check says how to check the conditions of one kind of server.
type Check struct {
	// Put is a compare-and-swap of an object under a key.
	Put func(ctx context.Context, key string, prev driver.Version, value []byte) (driver.Version, error)
	// Never is a version that no object has.
	Never driver.Version
	// Create and Replace name the conditions that the two writes have. Version is the word for a
	// version.
	Create, Replace, Version string
	// Remedy says which server to use.
	Remedy string
	// Place formats a key for a message.
	Place func(key string) string
}

// NewConditions sends no request.
func NewConditions(c Check) *Conditions { return &Conditions{check: c, turn: make(chan struct{}, 1)} }

// Trust makes Require return nil, for tests that count requests.
func (c *Conditions) Trust() { c.heeded.Store(true) }

// Require returns nil if the server heeds conditions, as far as is known. The first time it makes
// two or three writes to an object in the folder of the key, with one check at a time. Its error
// wraps driver.ErrUnfit if the server ignores a condition.
func (c *Conditions) Require(ctx context.Context, key string) error {
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
	err := c.run(ctx, Folder(key)+ConditionsName)
	c.heeded.Store(err == nil)
	return err
}

// run makes two writes that the server must refuse: one creates an object that exists, and one
// replaces a version that the object never had. Checks of other processes do not disturb it, since
// none of them deletes the object.
func (c *Conditions) run(ctx context.Context, key string) error {
	for !c.creates || c.there != key {
		switch heeded, err := c.violate(ctx, key, ""); {
		case err != nil:
			return err
		case heeded:
			c.creates, c.there = true, key
		case c.there == key:
			return c.unfit(c.check.Create, "an object is overwritten under the condition that it does not exist: two candidates can both "+
				"begin an election")
		default:
			c.there = key // it did not exist
		}
	}
	return c.Violate(ctx, key)
}

// Violate replaces a version that the object of the check never had, which changes nothing on a
// server that heeds conditions. Its error wraps driver.ErrUnfit if the server applied the write,
// and driver.ErrDenied if the right to write is missing.
func (c *Conditions) Violate(ctx context.Context, key string) error {
	key = Folder(key) + ConditionsName
	switch heeded, err := c.violate(ctx, key, c.check.Never); {
	case err != nil:
		return err
	case !heeded:
		return c.unfit(c.check.Replace, "the server replaces an object although the condition names another "+c.check.Version+": an old "+
			"leader overwrites the record of the new one")
	}
	return nil
}

// violate writes under a condition that an existing object does not meet. An error leaves open how
// the server treats it.
func (c *Conditions) violate(ctx context.Context, key string, prev driver.Version) (heeded bool, err error) {
	switch _, err := c.check.Put(ctx, key, prev, []byte(ConditionsText)); {
	case errors.Is(err, driver.ErrConflict):
		return true, nil
	case err == nil, errors.Is(err, ErrNoVersion):
		return false, nil
	default:
		return false, fmt.Errorf("check, by a write to %s, that the server heeds conditions: %w", c.check.Place(key), err)
	}
}

func (c *Conditions) unfit(condition, problem string) error {
	return fmt.Errorf("%w: %s: %s; %s", driver.ErrUnfit, condition, problem, c.check.Remedy)
}
