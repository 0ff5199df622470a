package object

import (
	"context"
	"errors"
	"fmt"
	"sync"

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
// conditions of writes. It must be made by NewConditions. Its methods may be called from many
// goroutines.
type Conditions struct {
	check Check

	mu      sync.Mutex
	heeded  bool     // the server refuses the writes that it should: nothing is left to check
	current *attempt // the check under way
	known   *known   // of the last check, or the one under way
}

// attempt is one check. The calls that wait for it take its result.
type attempt struct {
	key  string
	done chan struct{}
	err  error // set before done is closed
	// gaveUp: the call that made the check ended, so the result is none.
	gaveUp bool
	// unfit is the result of Violate in the meantime, if the server ignored a condition.
	unfit error
}

// known is how far a check came. The next one goes on there, so that one request in each call is
// enough. Only the check under way uses it.
type known struct {
	creates bool   // the server heeds the condition of a creation
	there   string // the key of an object that exists
	refused string // a key whose creation was refused; whether there is an object was not read yet
}

// Check says how to check the conditions of one kind of server.
type Check struct {
	// Put is a compare-and-swap of an object under a key.
	Put func(ctx context.Context, key string, prev driver.Version, value []byte) (driver.Version, error)
	// Read returns the state of an object.
	Read func(ctx context.Context, key string) (driver.Entry, error)
	// Never is a version that no object has.
	Never driver.Version
	// Create and Replace name the conditions that the two writes have. Version is the word for a
	// version.
	Create, Replace, Version string
	// Remedy says which server to use. CreateRemedy is added where the condition of a creation is
	// ignored; it may be empty.
	Remedy, CreateRemedy string
	// Place formats a key for a message.
	Place func(key string) string
}

// NewConditions sends no request.
func NewConditions(c Check) *Conditions { return &Conditions{check: c, known: new(known)} }

// Trust makes Require return nil, for tests that count requests.
func (c *Conditions) Trust() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.heeded = true
}

// Require returns nil if the server heeds conditions, as far as is known. The first time it makes
// two or three writes to an object in the folder of the key, and a read if the object was there
// before. The check is a part of the call that makes it. Other calls wait for its result, as long
// as their contexts last. The error wraps driver.ErrUnfit if the server ignores a condition.
func (c *Conditions) Require(ctx context.Context, key string) error {
	key = Folder(key) + ConditionsName
	for {
		a, mine, from := c.join(key)
		switch {
		case a == nil:
			return nil
		case mine:
			c.finish(a, c.run(ctx, key, from), ctx.Err() != nil)
			return a.err
		}
		select {
		case <-a.done:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if a.err != nil && !a.gaveUp && a.key == key {
			return a.err
		}
	}
}

// join returns the check under way, or a new one, which the caller must make; nil if none is
// needed.
func (c *Conditions) join(key string) (current *attempt, mine bool, from *known) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.heeded {
		return nil, false, nil
	}
	if c.current == nil {
		c.current, mine = &attempt{key: key, done: make(chan struct{})}, true
	}
	return c.current, mine, c.known
}

func (c *Conditions) finish(own *attempt, err error, gaveUp bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err == nil {
		err = own.unfit
	}
	if errors.Is(err, driver.ErrUnfit) {
		c.known = new(known)
	}
	own.err, own.gaveUp = err, gaveUp
	c.heeded, c.current = err == nil, nil
	close(own.done)
}

// run makes two writes that the server must refuse: one creates an object that exists, and one
// replaces a version that the object never had. Checks of other processes do not disturb it, since
// none of them deletes the object.
func (c *Conditions) run(ctx context.Context, key string, k *known) error {
	for !k.creates || k.there != key {
		heeded, err := k.refused == key, error(nil)
		if !heeded {
			heeded, err = c.violate(ctx, key, "")
		}
		switch {
		case err != nil:
			return err
		case heeded && k.there == key:
			k.creates = true
		case heeded:
			k.refused = key
			if err := c.confirm(ctx, key, k); err != nil {
				return err
			}
		case k.there == key:
			return c.unfit(c.check.Create, Overwrites, c.check.Remedy+c.check.CreateRemedy)
		default:
			k.there = key // it did not exist
		}
	}
	return c.replace(ctx, key)
}

// confirm reads whether there is an object, after its creation was refused. The refusal may have
// another reason, such as a proxy. Then the next write would go to a missing object, which a server
// may refuse although it ignores the condition. A client that may not read takes its refusal as it
// is: no candidate leads without reading.
func (c *Conditions) confirm(ctx context.Context, key string, k *known) error {
	e, err := c.check.Read(ctx, key)
	denied := errors.Is(err, driver.ErrDenied)
	if err != nil && !denied {
		return c.unchecked(key, err)
	}
	k.refused = ""
	if e.Version == "" && !denied {
		return c.unchecked(key, errors.New("the server refuses to create the object as if it were there, and a read shows none; if "+
			"this lasts, go past the proxy, or "+c.check.Remedy))
	}
	k.creates, k.there = true, key
	return nil
}

// Violate replaces a version that the object of the check never had, which changes nothing on a
// server that heeds conditions. Its error wraps driver.ErrUnfit if the server applied the write,
// and driver.ErrDenied if the right to write is missing. If the server applied the write, Require
// checks again.
func (c *Conditions) Violate(ctx context.Context, key string) error {
	err := c.replace(ctx, Folder(key)+ConditionsName)
	if errors.Is(err, driver.ErrUnfit) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.heeded, c.known = false, new(known)
		if c.current != nil {
			c.current.unfit = err
		}
	}
	return err
}

func (c *Conditions) replace(ctx context.Context, key string) error {
	heeded, err := c.violate(ctx, key, c.check.Never)
	if err == nil && !heeded {
		return c.unfit(c.check.Replace, Replaces(c.check.Replace, c.check.Version), c.check.Remedy)
	}
	return err
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
		return false, c.unchecked(key, err)
	}
}

func (c *Conditions) unchecked(key string, err error) error {
	return fmt.Errorf("check, by a write to %s, that the server heeds conditions: %w", c.check.Place(key), err)
}

func (c *Conditions) unfit(condition, problem, remedy string) error {
	return fmt.Errorf("%w: %s: %s; %s", driver.ErrUnfit, condition, problem, remedy)
}

// Overwrites is the problem of a server that ignores the condition of a creation.
const Overwrites = "an object is overwritten under the condition that it does not exist: two candidates can both begin an election"

// Replaces is the problem of a server that ignores the condition of a replacement, by the name of
// the condition and the word for a version.
func Replaces(condition, version string) string {
	return fmt.Sprintf("the server replaces an object although %s names another %s: an old leader overwrites the record of the new one",
		condition, version)
}
