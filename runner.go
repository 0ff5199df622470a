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
	"github.com/tenure-go/tenure/internal/trace"
	"github.com/tenure-go/tenure/metrics"
)

// runner runs the state machine: it passes it the store's answers and the clock's readings, and
// carries out its decisions. It decides nothing else.
//
// Every input is one step under mu: read the clock, pass the input to the machine, take its
// decisions. Nothing under mu blocks. No user code runs there, except Config.Clock and
// nomination.Gate (L14). A runner has no goroutine of its own: steps happen in store calls (one at
// a time, in a goroutine that ends with them), in timers, in pushes from the store, and in calls of
// the user.
//
// There may be ten thousand in a process, so rarely used fields are behind a pointer, and common
// data is shared.
type runner struct {
	*shared
	key    string
	events notifier

	mu       sync.Mutex
	settings *settings
	machine  trace.Machine
	timer    wakeTimer
	call     call
	watch    watch
	nominee  *nominee  // nil: there is no Nominator
	presence *presence // nil: the store has none
	meter    *meter

	busy          atomic.Bool // a Run, Join or Campaign is under way; not under the lock
	refused       bool        // the store denied reading and had never allowed it
	waits         protocol.Wait
	observers     int32
	published     uint32          // how often the leader or its published data changed
	statusWaiters []*statusWaiter // they wait for a change of the status
	// leaderSince is when the present leader was first seen. Without one, it is when the last term
	// was over.
	leaderSince protocol.Moment
	trouble     error   // of the last failed operation, until one succeeds
	term        *Term   // the open term
	seeker      *seeker // the campaign for the next term
}

// seeker is one campaign. onResult is called in a new goroutine each time: with each term that this
// process wins, and with an error if the campaign ends. If the campaign was stopped, it is called
// with neither a term nor an error.
type seeker struct {
	ctx      context.Context
	onResult func(*Term, error)
	once     bool // it seeks one term alone; the end of ctx does not end a term that was won
	stopped  bool // it seeks no further term
	runner   *runner
	index    int // among the seekers that wait for the end of ctx
}

// call is the store operation in flight.
type call struct {
	id     uint64
	cancel context.CancelFunc
}

// wakeTimer is the timer for the machine's next step. It is reset only to an earlier time: a later
// one would follow from each question whether the work may act, which must be cheap. If the timer
// fires too early, that costs one step and does no harm.
type wakeTimer struct {
	at   time.Duration // on the Mono clock
	stop func() bool
}

// step passes an input to the machine. Other code only reads the machine, under mu, or its
// incarnation, which never changes. It carries out the decisions that must be atomic with the step,
// such as the end of contexts, and starts the others.
func (m *runner) step(input func(now clock.Reading)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.clock.Now()
	if m.nominee != nil {
		m.nominee.applyGate(m, now)
	}
	if input != nil {
		input(now)
	}
	todo := m.machine.Next(now)
	for _, t := range todo.Transitions {
		m.transition(now, t)
	}
	m.noteWait(now)
	if m.machine.Failures() == 0 {
		m.trouble = nil
	}
	m.start(todo.Op)
	m.setTimer(now, todo)
	m.updateSubscriptions()
	m.rights.checkIfDue(m, now)
	if m.term != nil {
		m.term.noteRemaining(m.machine.Moves())
	}
	m.meter.follow(m, now)
	m.wakeStatusWaiters()
}

// start calls the store if there is an operation, and cancels a call whose answer the machine no
// longer needs.
func (m *runner) start(op *protocol.Op) {
	if m.call.cancel != nil && !m.machine.Current(m.call.id) {
		m.call.cancel()
		m.call = call{}
	}
	if op == nil {
		return
	}
	// A little less than the machine's own limit, so that the store's error says what it waited
	// for.
	ctx, cancel := context.WithTimeout(context.Background(), op.Timeout-op.Timeout/64)
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
	if errors.Is(err, context.DeadlineExceeded) && !isTimeout(err) && !unsent(err) {
		err = fmt.Errorf("%w: %w", driver.ErrNoAnswer, err)
	}
	return fmt.Errorf("tenure: election %q: %s: %w", m.key, what, err)
}

// unsent reports whether a call waited for a connection until its context ended.
func unsent(err error) bool {
	return errors.Is(err, driver.ErrPoolBusy) || errors.Is(err, driver.ErrConnecting)
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

// decode decodes an entry. The machine receives only decoded cells.
func (f *shared) decode(e driver.Entry) protocol.Cell {
	c := protocol.Decode(e)
	if c.Kind == protocol.Valid {
		f.leaders.intern(&c.Record)
	}
	return c
}

// setTimer sets the timer, unless it fires early enough already.
func (m *runner) setTimer(now clock.Reading, todo protocol.Todo) {
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
	m.timer = wakeTimer{at: at}
	armed := at
	m.timer.stop = m.clock.AfterFunc(at-now.Mono, func() {
		m.step(func(now clock.Reading) { m.timerFired(now, armed) })
	})
}

// minWake prevents a busy loop if a timer fires slightly early.
const minWake = 100 * time.Microsecond

func (m *runner) timerFired(now clock.Reading, armed time.Duration) {
	if m.timer.at == armed {
		m.timer = wakeTimer{}
	}
	m.machine.Tick(now)
}

// updateSubscriptions begins or ends the watch of the key, the subscription to the Nominator and
// the announcement of this candidate, as the machine needs them.
func (m *runner) updateSubscriptions() {
	active := m.machine.Active()
	if m.watcher != nil {
		m.watch.setActive(m, active && !m.settings.given.Tuning.NoWatch)
	}
	if m.nominee != nil {
		m.nominee.setActive(m, m.competes())
	}
	if m.presence != nil {
		m.presence.setActive(m, m.competes())
	}
	if !active {
		m.latency.call.giveUp(m)
		m.rights.call.giveUp(m)
	}
	if !active && m.timer.stop != nil {
		m.timer.stop()
		m.timer = wakeTimer{}
	}
}

// transition carries out one change that the machine reports. It runs under the runner's lock:
// contexts of a term end in the same step as the term itself, so a caller that sees a context end
// finds Err not nil. The event is posted first, so that Run waits for it before it returns.
func (m *runner) transition(now clock.Reading, t protocol.Transition) {
	if t.What == protocol.Trouble {
		t.Cause = m.explainTimeout(t.Cause)
		m.trouble = t.Cause
	}
	if kind, ok := kinds[t.What]; ok {
		e := Event{Time: now.Wall, Kind: kind, Term: t.Term, Leader: leaderOf(t.Leader), Cause: t.Cause}
		if kind == EventTrouble || kind == EventAlarm {
			e.Term = m.term.Token()
		}
		m.post(e)
	}
	switch t.What {
	case protocol.Elected:
		m.elected(t.Term)
	case protocol.Leaving:
		m.term.askToFinish(t.Cause)
	case protocol.Lost:
		m.term.end(&lostError{t.Cause})
	case protocol.Released:
		m.term.endResign(t.Cause)
	case protocol.Candidacy, protocol.Withdrawn:
		m.closeTerm(t.What)
	case protocol.NewLeader:
		m.published++
		if t.OtherTerm {
			m.leaderSince = protocol.MomentOf(now.Wall)
		}
		if m.nominee != nil {
			m.nominee.setVacant(m, t.Leader.ID == "")
		}
	case protocol.Asking:
		campaign, within := m.seeker.ctx, m.settings.machine.Renew
		m.calls.start(false, func() { m.requestHandOver(campaign, t, within) })
	case protocol.Refused:
		m.refuse(t.Cause)
	case protocol.Alarm:
		m.meter.alarmed(t.Cause)
	}
}

// kinds maps the changes that become events.
var kinds = map[protocol.What]EventKind{
	protocol.Candidacy: EventCandidate, protocol.Elected: EventElected, protocol.Leaving: EventLeaving,
	protocol.Lost: EventLost, protocol.Released: EventReleased, protocol.NewLeader: EventLeader,
	protocol.Overdue: EventOverdue, protocol.Trouble: EventTrouble, protocol.Refused: EventTrouble,
	protocol.Alarm: EventAlarm, protocol.Asking: EventAsking,
}

func (m *runner) post(e Event) {
	e.Election, e.ID = m.key, m.id
	if m.events.post(m.shared, e) {
		m.meter.dropped()
	}
}

// report posts an event that does not come from the machine. The term may be nil.
func (m *runner) report(kind EventKind, t *Term, cause error) {
	m.post(Event{Time: m.clock.Now().Wall, Kind: kind, Term: t.Token(), Cause: cause})
}

func (m *runner) elected(token uint64) {
	s := m.seeker
	m.term = newTerm(s.ctx, m, token)
	if s.once {
		m.dropSeeker()
	}
	go s.onResult(m.term, nil)
}

// closeTerm closes the term, if one is open. If the member withdrew, it also ends the campaign.
func (m *runner) closeTerm(what protocol.What) {
	if m.term != nil {
		m.term.endResign(nil)
		m.term = nil
	}
	if what == protocol.Withdrawn && m.seeker != nil {
		m.endCampaign(context.Cause(m.seeker.ctx))
	}
}

// refuse ends the campaign because the store denies reading.
func (m *runner) refuse(cause error) {
	m.refused = true
	if m.seeker != nil {
		m.endCampaign(cause)
	}
}

func (m *runner) endCampaign(err error) {
	s := m.seeker
	m.dropSeeker()
	go s.onResult(nil, err)
}

// dropSeeker removes the seeker. It receives no more calls.
func (m *runner) dropSeeker() {
	if m.seeker != nil {
		m.cancels.remove(m.seeker)
		m.seeker = nil
	}
}
