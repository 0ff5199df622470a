package object

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"
	"time"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/race"
)

// Ready refuses a request that must not be sent: its key is not valid, or its context has ended.
func Ready(ctx context.Context, store interface{ CheckKey(key string) error }, key string) error {
	if err := store.CheckKey(key); err != nil {
		return err
	}
	return context.Cause(ctx)
}

// Cells are the cells of a store that reads and writes them as its Check does. They must be made by
// NewCells.
type Cells struct {
	*Conditions
	adapter string
	keys    interface{ CheckKey(key string) error }
}

// NewCells sends no request. The adapter is the name of its package, which begins errors.
func NewCells(adapter string, keys interface{ CheckKey(key string) error }, c Check) *Cells {
	return &Cells{NewConditions(c), adapter, keys}
}

// Read is the method of a driver.Store.
func (c *Cells) Read(ctx context.Context, key string) (e driver.Entry, err error) {
	if err = Ready(ctx, c.keys, key); err == nil {
		e, err = c.check.Read(ctx, key)
	}
	if err != nil {
		return driver.Entry{}, fmt.Errorf("%s: read %s: %w", c.adapter, c.check.Place(key), err)
	}
	return e, nil
}

// CompareAndSwap is the method of a driver.Store. Before the first write it checks conditions.
func (c *Cells) CompareAndSwap(ctx context.Context, key string, prev driver.Version, value []byte) (v driver.Version, err error) {
	if err = Ready(ctx, c.keys, key); err == nil {
		err = c.Require(ctx, key)
	}
	if err == nil {
		v, err = c.check.Put(ctx, key, prev, value)
	}
	if err != nil {
		return "", fmt.Errorf("%s: compare and swap %s: %w", c.adapter, c.check.Place(key), err)
	}
	return v, nil
}

// CheckRights is the method of a driver.Inspector. It takes the steps until one returns an error.
func (c *Cells) CheckRights(ctx context.Context, key string, steps ...func(ctx context.Context, key string) error) error {
	err := Ready(ctx, c.keys, key)
	for _, step := range steps {
		if err == nil {
			err = step(ctx, key)
		}
	}
	if err != nil {
		return fmt.Errorf("%s: check the right to write %s: %w", c.adapter, c.check.Place(key), err)
	}
	return nil
}

// Inspection says how to inspect a kind of server.
type Inspection struct {
	// Remove removes an object. Right is what it needs, and ByHand an operator's command that does
	// the same.
	Remove func(ctx context.Context, key string) error
	Right  string
	ByHand func(key string) string
	// Skew says what a wrong clock leads to.
	Skew string
}

// Inspect lets writers race for an object of its own, which it removes again, and checks the
// server's clock.
func (c *Cells) Inspect(ctx context.Context, i Inspection) ([]driver.Finding, error) {
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	key := ProbePrefix + strings.ToLower(rand.Text())
	_, found, err := race.Probe(ctx, unchecked{c.check}, key)
	found = append(found, i.clean(ctx, key)...)
	if err != nil {
		return nil, err
	}
	e, err := c.check.Read(ctx, ConditionsName)
	if err != nil {
		return nil, err
	}
	return append(found, AtClock(e.Floor, time.Now(), i.Skew)...), nil
}

// unchecked are cells before the check of conditions.
type unchecked struct{ Check }

func (u unchecked) Read(ctx context.Context, key string) (driver.Entry, error) {
	return u.Check.Read(ctx, key)
}

func (u unchecked) CompareAndSwap(ctx context.Context, key string, prev driver.Version, value []byte) (driver.Version, error) {
	return u.Put(ctx, key, prev, value)
}

func (i Inspection) clean(ctx context.Context, key string) []driver.Finding {
	ctx, cancel := Cleaning(ctx)
	defer cancel()
	err := i.Remove(ctx, key)
	if err == nil {
		return nil
	}
	return []driver.Finding{{
		Severity: driver.Advice, Setting: i.Right,
		Problem: fmt.Sprintf("this inspection could not remove its object: %v", err), Remedy: i.ByHand(key),
	}}
}

// Renewals says, behind a problem, how many renewals a leader makes; empty if the lease is not
// known.
func Renewals(lease time.Duration) string {
	if lease <= 0 {
		return ""
	}
	return fmt.Sprintf(", about %d a day with a lease of %v", 3*24*time.Hour/lease, lease)
}
