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
	"slices"
	"strings"
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
	// Log returns a line for each of the latest 1,000 faults that struck, oldest first. The landing
	// of a late write, and the beginning and the end of a partition, have a line, too.
	Log() []string
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
		c.note(note)
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

// Abilities returns those of the store inside. Watches and pushes are under faults, and a partition
// cuts off all other calls that would reach a server.
func (c *core) Abilities() driver.Abilities {
	a := driver.AbilitiesOf(c.inner)
	cut := severed{c, a}
	if a.Watcher != nil {
		a.Watcher = watcher{c, a.Watcher}
	}
	if a.Inspector != nil {
		a.Inspector = cut
	}
	if a.Presence != nil {
		a.Presence = cut
	}
	return a
}

// severed has the abilities of the store inside whose calls hang in a partition.
type severed struct {
	c     *core
	inner driver.Abilities
}

// reach hangs in a partition until the context ends.
func (s severed) reach(ctx context.Context) error {
	if s.c.partitioned.Load() {
		<-ctx.Done()
	}
	return ctx.Err()
}

func (s severed) Inspect(ctx context.Context, lease time.Duration) ([]driver.Finding, error) {
	if err := s.reach(ctx); err != nil {
		return nil, err
	}
	return s.inner.Inspector.Inspect(ctx, lease)
}

func (s severed) CheckRights(ctx context.Context, key string) error {
	if err := s.reach(ctx); err != nil {
		return err
	}
	return s.inner.Inspector.CheckRights(ctx, key)
}

func (s severed) Keys(ctx context.Context) ([]string, error) {
	if err := s.reach(ctx); err != nil {
		return nil, err
	}
	return s.inner.Inspector.Keys(ctx)
}

// Announce passes in a partition, as without a connection. No question arrives then.
func (s severed) Announce(ctx context.Context, key string, who func() []byte) (stop func(), err error) {
	return s.inner.Presence.Announce(ctx, key, func() []byte {
		if s.c.partitioned.Load() {
			return nil
		}
		return who()
	})
}

func (s severed) Candidates(ctx context.Context, key string) ([][]byte, error) {
	if err := s.reach(ctx); err != nil {
		return nil, err
	}
	return s.inner.Presence.Candidates(ctx, key)
}

// logLength bounds the kept lines: enough to explain a failure, and few enough for a long run.
const logLength = 1000

// log keeps the latest lines.
type log struct {
	start   time.Time
	lines   []string
	dropped int
}

func (l *log) add(parts ...string) {
	if len(l.lines) == logLength {
		l.lines = l.lines[1:]
		l.dropped++
	}
	l.lines = append(l.lines, fmt.Sprintf("+%v %s", time.Since(l.start), strings.Join(parts, ": ")))
}

func (c *core) note(parts ...string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.log.add(parts...)
}

func (c *core) Log() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.log.lines)
}

func (c *core) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var b strings.Builder
	fmt.Fprintf(&b, "faults: seed %d, plan: %v\n", c.seed, c.plan)
	if c.log.dropped > 0 {
		fmt.Fprintf(&b, "(%d earlier events)\n", c.log.dropped)
	}
	for _, line := range c.log.lines {
		fmt.Fprintln(&b, line)
	}
	return b.String()
}
