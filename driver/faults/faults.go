// Package faults wraps a store so that it fails on purpose, in the ways in which networks and
// servers fail. Use it to test an adapter, or a program that leads.
//
//	f := faults.New(memory.New(), seed, faults.Plan{
//		Chances:  faults.Chances{faults.LoseAnswer: 0.05, faults.LandLate: 0.01},
//		MaxDelay: 200 * time.Millisecond,
//	})
//
// The result is a driver.Wrapper with the abilities of the store inside. Faults strike reads,
// writes, watches and pushes; all other abilities suffer partitions alone. Faults come by chance,
// from the [Plan]; by script, from [Store.Next]; and for all operations, from [Store.Partition]. At
// most one fault strikes an operation. For more, wrap twice: for example, one store per candidate
// over a common one.
//
// The random choice depends only on the seed, on the kind of the operation and on how many
// operations of that kind came before. The same order of operations gives the same faults. A
// failing test should print the store: seed, plan, and the faults that struck.
//
// Time is that of packages time and context, so that a wrapped store can be used within
// testing/synctest.
package faults

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tenure-go/tenure/driver"
)

// ErrInjected is wrapped by every error that this package makes. The outcome of a write that
// returns it is unknown, unless it wraps driver.ErrDenied too.
var ErrInjected = errors.New("injected fault")

// Store is a driver.Store that fails on purpose, with methods to control its faults. It is made by
// New. Ask for its other abilities, such as driver.Watcher, by driver.AbilitiesOf. All its methods
// may be called from many goroutines.
type Store interface {
	driver.Wrapper

	// Next sets faults for the next operations of one kind, one each, in order, after those set
	// before. None lets an operation pass. While there are any, the plan's chances do not apply to
	// that kind. It panics on a fault that cannot strike that kind of operation.
	Next(op Op, faults ...Fault)
	// SetPlan replaces the plan, for operations that begin later. The zero Plan ends all faults by
	// chance.
	SetPlan(plan Plan)
	// Partition cuts the store off: calls hang until their context ends, answers under way are
	// lost, and nothing is pushed. Late writes still land: they have passed the cut already.
	Partition()
	// Heal ends a partition. Calls that already hang go on hanging: their packets are lost.
	Heal()
	// Wait returns once all late writes have landed and all delayed pushes are delivered. Call it
	// when no operation is under way any more. Each takes at most the plan's MaxDelay and, for a
	// write, 10 s for the store inside.
	Wait()
	// Log returns the latest 1,000 faults that struck, oldest first.
	Log() []Event
	// String is the seed, the plan and the log, one line each.
	String() string
}

// New wraps a store. The same seed and plan over the same operations give the same faults. With
// synctest, call it inside the bubble, so that the log counts the bubble's time, and pick a random
// seed outside: inside, the clock always starts at the same time.
func New(inner driver.Store, seed uint64, plan Plan) Store {
	c := &core{inner: inner, seed: seed, plan: plan, seenStates: seenStates{}}
	c.log.start = time.Now()
	return c
}

// core is the common part of all wrapped stores.
type core struct {
	inner       driver.Store
	seed        uint64
	partitioned atomic.Bool
	lateActions pending

	mu         sync.Mutex // guards the fields below; never held across a call
	plan       Plan
	counts     [opCount]uint64
	scripts    [opCount][]Fault
	seenStates seenStates
	log        log
}

func (c *core) Next(op Op, faults ...Fault) {
	for _, f := range faults {
		if !f.strikes(op) {
			panic(fmt.Sprintf("faults: %v cannot strike a %v", f, op))
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.scripts[op] = append(c.scripts[op], faults...)
}

func (c *core) SetPlan(plan Plan) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.plan = plan
}

func (c *core) Partition() { c.setPartition(true, "partition") }

func (c *core) Heal() { c.setPartition(false, "heal") }

func (c *core) setPartition(cut bool, note string) {
	if c.partitioned.Swap(cut) != cut {
		c.note(operation{}, note)
	}
}

func (c *core) Wait() { c.lateActions.wait() }

// Read is the inner store's, under faults.
func (c *core) Read(ctx context.Context, key string) (driver.Entry, error) {
	if err := ctx.Err(); err != nil {
		return driver.Entry{}, err
	}
	o := c.begin(Read, key)
	if o.fault == Stale {
		return o.older, nil
	}
	var e driver.Entry
	err := c.call(ctx, o, func() (err error) {
		e, err = c.inner.Read(ctx, key)
		return err
	})
	if err != nil {
		return driver.Entry{}, err
	}
	c.remember(key, e)
	return e, nil
}

// CompareAndSwap is the inner store's, under faults.
func (c *core) CompareAndSwap(ctx context.Context, key string, prev driver.Version, value []byte) (driver.Version, error) {
	if err := ctx.Err(); err != nil {
		return "", err
	}
	o := c.begin(Write, key)
	if o.fault == LandLate {
		return "", c.landLate(ctx, o, prev, value)
	}
	var v driver.Version
	err := c.call(ctx, o, func() (err error) {
		v, err = c.inner.CompareAndSwap(ctx, key, prev, value)
		return err
	})
	if err != nil {
		return "", err
	}
	return v, nil
}
