package tenure

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tenure-go/tenure/clock"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/internal/protocol"
	"github.com/tenure-go/tenure/internal/record"
	"github.com/tenure-go/tenure/metrics"
)

// runner runs the state machine: it passes it the store's answers and the clock's readings, and
// carries out its wishes. It decides only how to do so.
//
// Every input is one step under mu: read the clock, pass the input to the machine, take its wishes.
// Nothing under mu blocks, and no user code runs there. A runner has no goroutine of its own: steps
// happen in store calls (one at a time, in a goroutine that ends with them), in timers, in pushes
// from the store, and in calls of the user's.
//
// There may be ten thousand in a process, so rarely used fields are behind a pointer, and common
// data is shared.
type runner struct {
	*shared
	key    string
	events notifier

	mu         sync.Mutex
	settings   *settings
	machine    protocol.Machine
	timer      alarm
	call       call
	watch      watch
	nomination *nomination // nil: there is no Nominator
	meter      *meter

	busy          atomic.Bool // a Run, Start or Campaign is under way; not under the lock
	refused       bool        // reading was denied before it was ever allowed
	observers     int32
	published     uint32         // how often another leader, or other things of one, became known
	statusWaiters *statusWaiters // nil: there is no waiter for a change of the status
	// leaderSince is when the present leader was first seen, or the last one was last.
	leaderSince protocol.Moment
	term        *Term   // the open one
	seeker      *seeker // waits for the next one
}

// seeker is called with each election, and once with the end: one of its arguments is set, or
// neither if it was stopped. It must not block.
type seeker struct {
	ctx     context.Context
	won     func(*Term, error)
	once    bool // seeks one term alone, which the end of ctx does not concern
	stopped bool // it seeks no further term
	runner  *runner
	place   int // among the seekers that wait for the end of ctx
}

// call is the store operation in flight.
type call struct {
	id     uint64
	cancel context.CancelFunc
}

// alarm is the armed timer. It may ring too early, which costs a look; so it is only reset to ring
// earlier.
type alarm struct {
	at   time.Duration // on the Mono clock
	stop func() bool
}

// step is the only way to the machine. It returns after the machine's wishes were taken down and,
// where they must be atomic with the step (the end of contexts), carried out.
func (m *runner) step(input func(now clock.Reading)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.clock.Now()
	if m.nomination != nil {
		m.nomination.applyGate(m, now)
	}
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
	m.rights.checkIfDue(m, now)
	if m.term != nil {
		m.term.move(m.machine.Moves())
	}
	m.meter.follow(m, now)
	m.wakeStatusWaiters()
}

// start calls the store, unless there is nothing to do, and gives up a call that is not waited for
// any more.
func (m *runner) start(op *protocol.Op) {
	if m.call.cancel != nil && !m.machine.Current(m.call.id) {
		m.call.cancel()
		m.call = call{}
	}
	if op == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), op.Timeout)
	m.call = call{id: op.ID, cancel: cancel}
	urgent := op.Write || m.term != nil // a leader must not wait behind ten thousand observers
	if op.Write {
		m.calls.start(urgent, func() { m.write(ctx, op) })
	} else {
		m.calls.start(urgent, func() { m.read(ctx, op) })
	}
}

func (m *runner) read(ctx context.Context, op *protocol.Op) {
	entry, err := m.store.Read(ctx, m.key)
	var cell protocol.Cell
	if err == nil {
		cell = m.decode(entry)
	}
	m.latency.answered(ctx, err)
	m.step(func(now clock.Reading) {
		m.meter.called(metrics.Read, err, op.Took(now))
		m.machine.ReadDone(now, op.ID, cell, outcome(err), m.wrap("read", err))
	})
}

func (m *runner) write(ctx context.Context, op *protocol.Op) {
	value, err := record.Encode(op.Record)
	var version driver.Version
	if err == nil && op.Overdue(m.clock.Now()) {
		err = protocol.ErrTimeout // this process was stopped: the version may be stale
	}
	if err == nil {
		version, err = m.store.CompareAndSwap(ctx, m.key, op.Prev, value)
		m.latency.answered(ctx, err)
	}
	if err == nil {
		m.rights.learn(nil)
	}
	m.step(func(now clock.Reading) {
		m.meter.called(metrics.Write, err, op.Took(now))
		m.machine.WriteDone(now, op.ID, version, outcome(err), m.wrap("write", err))
	})
}

func (m *runner) wrap(what string, err error) error {
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
func (f *shared) decode(e driver.Entry) protocol.Cell {
	c := protocol.Decode(e)
	if c.Kind == protocol.Valid {
		f.leaders.intern(&c.Record)
	}
	return c
}

// arm sets the timer, unless it rings early enough already.
func (m *runner) arm(now clock.Reading, todo protocol.Todo) {
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
		m.step(func(now clock.Reading) { m.ring(now, armed) })
	})
}

// minWake keeps a timer that rang a trifle early from ringing in a tight circle.
const minWake = 100 * time.Microsecond

func (m *runner) ring(now clock.Reading, armed time.Duration) {
	if m.timer.at == armed {
		m.timer = alarm{}
	}
	m.machine.Tick(now)
}

// attend watches the key and subscribes to the Nominator while the machine needs it, and ends both
// when it does not.
func (m *runner) attend() {
	active := m.machine.Active()
	if m.watcher != nil {
		m.watch.setActive(m, active && !m.settings.given.Tuning.NoWatch)
	}
	if m.nomination != nil {
		m.nomination.setActive(m, m.competes())
	}
	if !active {
		m.latency.call.giveUp(m)
		m.rights.call.giveUp(m)
	}
	if !active && m.timer.stop != nil {
		m.timer.stop()
		m.timer = alarm{}
	}
}
