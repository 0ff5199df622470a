package tenure

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/internal/protocol"
	"github.com/tenure-go/tenure/internal/record"
)

// member runs the state machine: it feeds it with what the store says and the clock shows, and carries out what it wants.
// All that it decides by itself is how.
//
// Every input is one step under mu: read the clock, tell the machine, take what it wants. Nothing under mu blocks, and no
// user code runs there. A member has no goroutine of its own: steps happen in store calls (one at a time, each in a
// goroutine that ends with it), in timers, in pushes from the store, and in calls of the user's.
type member struct {
	id     string
	key    string
	store  driver.Store
	clock  Clock
	events *notifier

	mu      sync.Mutex
	given   Config // as the user wrote it
	cfg     Config // the same with its defaults
	machine *protocol.Machine
	timer   alarm
	call    call
	watch   watch

	observers int
	refused   error         // reading was denied before it was ever allowed
	changed   chan struct{} // closed when the status changes
	shown     shown         // the status as of the last change
	published int           // how often another leader, or other things of one, became known
	// leaderSince is when the present leader was first seen, or the last one was last.
	leaderSince time.Time
	term        *Term   // the open one
	seeker      *seeker // who waits for the next one
}

// seeker is told of each election, and once of the end: exactly one of its arguments is set. It must not block.
type seeker struct {
	ctx  context.Context
	won  func(*Term, error)
	once bool        // seeks one term alone, which the end of ctx does not concern
	stop func() bool // stops waiting for the end of ctx
}

// call is the store operation in flight.
type call struct {
	id     uint64
	cancel context.CancelFunc
}

// alarm is the armed timer. It may ring too early, which costs a look; so it is only set anew to ring earlier.
type alarm struct {
	at   time.Duration // on the Mono clock
	stop func() bool
}

func newMember(store driver.Store, key string, given, cfg Config) *member {
	m := &member{
		id: cfg.ID, key: key, store: store, clock: cfg.Clock, given: given, cfg: cfg, changed: make(chan struct{}),
		events: &notifier{log: cfg.Logger, onEvent: cfg.OnEvent},
	}
	p := cfg.protocol()
	p.ID, p.Incarnation, p.Rand = cfg.ID, incarnation(store), random
	_, p.Hearsay = store.(driver.Hearsay)
	m.machine = protocol.New(p)
	return m
}

// incarnation is a name that no other election value has, in this process or another (L12).
func incarnation(store driver.Store) string {
	if s, ok := store.(driver.Identifier); ok {
		return s.Incarnation()
	}
	return fmt.Sprintf("%016x", random())
}

// step is the only way to the machine. It returns after the machine's wishes were taken down and, where they must be
// atomic with the step (the end of contexts), carried out.
func (m *member) step(input func(now Reading)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.clock.Now()
	if input != nil {
		input(now)
	}
	todo := m.machine.Next(now)
	for _, t := range todo.Transitions {
		m.transition(now, t)
	}
	m.start(todo.Op)
	m.arm(now, todo)
	m.attend()
	m.show()
}

// start calls the store, unless there is nothing to do, and gives up a call that is not waited for any more.
func (m *member) start(op *protocol.Op) {
	if m.call.cancel != nil && !m.machine.Current(m.call.id) {
		m.call.cancel()
		m.call = call{}
	}
	if op == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), op.Timeout)
	m.call = call{id: op.ID, cancel: cancel}
	if op.Write {
		go m.write(ctx, *op)
	} else {
		go m.read(ctx, op.ID)
	}
}

func (m *member) read(ctx context.Context, id uint64) {
	entry, err := m.store.Read(ctx, m.key)
	var cell protocol.Cell
	if err == nil {
		cell = decode(entry)
	}
	m.step(func(now Reading) { m.machine.ReadDone(now, id, cell, outcome(err), m.wrap("read", err)) })
}

func (m *member) write(ctx context.Context, op protocol.Op) {
	value, err := record.Encode(op.Record)
	var version driver.Version
	if err == nil {
		version, err = m.store.CompareAndSwap(ctx, m.key, op.Prev, value)
	}
	m.step(func(now Reading) { m.machine.WriteDone(now, op.ID, version, outcome(err), m.wrap("write", err)) })
}

func (m *member) wrap(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("tenure: election %q: %s: %w", m.key, what, err)
}

func outcome(err error) protocol.Outcome {
	switch {
	case err == nil:
		return protocol.Applied
	case errors.Is(err, driver.ErrConflict):
		return protocol.Conflict
	case errors.Is(err, driver.ErrDenied):
		return protocol.Denied
	}
	return protocol.Unknown
}

// decode reads an entry once, at the border; the machine sees records only.
func decode(e driver.Entry) protocol.Cell {
	c := protocol.Cell{Version: e.Version, Floor: e.Floor, Pristine: e.Pristine}
	if e.Absent() {
		return c
	}
	r, err := record.Decode(e.Value)
	var broken *record.BrokenError
	switch {
	case err == nil:
		c.Kind, c.Record = protocol.Valid, r
	case errors.As(err, &broken):
		c.Kind, c.Problem = protocol.Broken, err
		c.Record.Lease, c.Record.Term = broken.Lease, broken.Term
	default:
		c.Kind, c.Problem = protocol.Foreign, err
	}
	return c
}

// arm sets the timer, unless it rings early enough already.
func (m *member) arm(now Reading, todo protocol.Todo) {
	if !todo.Timed {
		return
	}
	at := now.Mono + max(todo.Wake, minWake)
	if m.timer.stop != nil {
		if m.timer.at <= at {
			return
		}
		m.timer.stop()
	}
	m.timer = alarm{at: at}
	armed := at
	m.timer.stop = m.clock.AfterFunc(at-now.Mono, func() {
		m.step(func(now Reading) { m.ring(now, armed) })
	})
}

// minWake keeps a timer that rang a trifle early from ringing in a tight circle.
const minWake = 100 * time.Microsecond

func (m *member) ring(now Reading, armed time.Duration) {
	if m.timer.at == armed {
		m.timer = alarm{}
	}
	m.machine.Tick(now)
}

// attend keeps a watch on the key while there is something to watch for, and lets go of all when there is not.
func (m *member) attend() {
	active := m.machine.Active()
	if w, ok := m.store.(driver.Watcher); ok {
		m.watch.want(m, w, active && !m.cfg.NoWatch)
	}
	if !active && m.timer.stop != nil {
		m.timer.stop()
		m.timer = alarm{}
	}
}
