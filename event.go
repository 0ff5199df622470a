package tenure

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/tenure-go/tenure/clock"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/internal/loglimit"
	"github.com/tenure-go/tenure/internal/protocol"
)

// EventKind names a kind of event.
type EventKind string

// The kinds of event, with the level at which Config.Logger has them.
const (
	// EventCandidate: this process seeks leadership. Info.
	EventCandidate EventKind = "candidate"
	// EventWaiting: it claims nothing yet, though no other candidate is known to lead; Cause says
	// why: vacant, unproven, malformed, same-id, foreign, ineligible or not-nominee. Or another
	// candidate leads, and the cause is same-id or other-lease. Info, or warning if the wait does
	// not end by itself.
	EventWaiting EventKind = "waiting"
	// EventElected: it leads. Info.
	EventElected EventKind = "elected"
	// EventLeaving: it was asked to finish; Cause says why. Info.
	EventLeaving EventKind = "leaving"
	// EventLost: its term ended before its work; Cause says why. Warning.
	EventLost EventKind = "lost"
	// EventReleased: its release is over. Cause is nil, or ErrUnconfirmed if the store did not
	// confirm the release. Info.
	EventReleased EventKind = "released"
	// EventLeader: the leader or its data changed; without an ID nobody leads. Info.
	EventLeader EventKind = "leader"
	// EventOverdue: its work did not stop within FinishWithin. Error.
	EventOverdue EventKind = "overdue"
	// EventFailed: lead returned an error that Run does not return; Cause has that error. Error.
	EventFailed EventKind = "failed"
	// EventTrouble: the store failed or refused; see Cause. The election goes on, unless the store
	// denied reading and had never allowed it. Warning.
	EventTrouble EventKind = "trouble"
	// EventAsking: this candidate has precedence, or a request names it, and it asks the leader to
	// hand over. Info.
	EventAsking EventKind = "asking"
	// EventAlarm: an operator should look. The key holds a wrong value, or the record or the store
	// was deleted, recreated or restored to an older state; Cause says which. Error.
	EventAlarm EventKind = "alarm"
)

// Event is one event of an election. OnEvent receives it, and `tenure watch --json` prints it.
type Event struct {
	// Time is when it happened, by the wall clock of this process.
	Time time.Time
	Kind EventKind
	// Election is the name of the election, and ID that of this candidate.
	Election string
	ID       string
	// In EventLeader and EventAsking, Term is the term of the leader; in EventTrouble and
	// EventAlarm, the open term of this candidate; otherwise the term of this candidate that the
	// event is about. It is 0 if there is none.
	Term uint64
	// Leader is the current leader, for EventLeader.
	Leader Leader
	// Cause is why the event happened, or nil.
	Cause error
	// Until is when the wait in EventWaiting is over at the latest, unless the record changes, by
	// the wall clock of this process. It is zero if nothing but an operator or the program ends the
	// wait.
	Until time.Time
	// Missed is how many events were dropped just before this one, because OnEvent or the Logger
	// was too slow.
	Missed int
}

// eventJSON is the promised format of `--json`. A missing field does not apply.
type eventJSON struct {
	// Time is RFC 3339 in UTC, with nanoseconds, by the clock of this process.
	Time time.Time `json:"time"`
	// Kind is the kind of the event.
	Kind EventKind `json:"event"`
	// Election is the name of the election.
	Election string `json:"election"`
	// ID is that of this candidate.
	ID string `json:"id"`
	// Term is this candidate's; for leader and asking the leader's; for trouble and alarm the open
	// term of this candidate. It is 0 if there is none.
	Term uint64 `json:"term"`
	// Leader is the ID of the leader, for leader. If it is missing there, nobody leads.
	Leader string `json:"leader,omitempty"`
	// Address is that of the leader.
	Address string `json:"address,omitempty"`
	// Cause is a text for people.
	Cause string `json:"cause,omitempty"`
	// Reason is one word for the cause: see ReasonOf.
	Reason Reason `json:"reason,omitempty"`
	// Until is when a wait is over at the latest.
	Until time.Time `json:"until,omitzero"`
	// Missed is how many events were dropped just before this one.
	Missed int `json:"missed,omitempty"`
}

// MarshalJSON returns one object with at least time (RFC 3339, UTC, nanoseconds), event, election,
// id and term. A cause comes with its reason: see ReasonOf.
func (e Event) MarshalJSON() ([]byte, error) {
	j := eventJSON{
		Time: e.Time.UTC(), Kind: e.Kind, Election: e.Election, ID: e.ID, Term: e.Term,
		Leader: e.Leader.ID, Address: e.Leader.Address, Until: e.Until.UTC(), Missed: e.Missed,
	}
	if e.Cause != nil {
		j.Cause, j.Reason = e.Cause.Error(), ReasonOf(e.Cause)
	}
	return json.Marshal(j)
}

// level is the log level of an event.
func (e Event) level() slog.Level {
	switch e.Kind {
	case EventAlarm, EventOverdue, EventFailed:
		return slog.LevelError
	case EventTrouble, EventLost:
		return slog.LevelWarn
	case EventWaiting:
		if e.Until.IsZero() {
			return slog.LevelWarn
		}
		return slog.LevelInfo
	case EventCandidate, EventElected, EventLeaving, EventReleased, EventLeader, EventAsking:
		return slog.LevelInfo
	}
	return slog.LevelDebug
}

// maxQueued bounds the events that wait for a slow OnEvent.
const maxQueued = 1024

// notifier hands events to the log and to OnEvent: in order, one at a time, and never on the
// renewal path. It has a queue and a goroutine only while there are events to deliver.
type notifier struct {
	mu    sync.Mutex
	queue *queue // nil: nothing is left to deliver
}

type queue struct {
	events []Event
	missed int
	empty  chan struct{} // closed when nothing is left
}

// post queues an event for the log and OnEvent, if either is set. It reports whether it dropped the
// oldest event for that.
func (n *notifier) post(to *shared, e Event) (dropped bool) {
	if to.log == nil && to.onEvent == nil {
		return false
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.queue == nil {
		n.queue = &queue{empty: make(chan struct{})}
		go n.deliver(to)
	}
	q := n.queue
	if dropped = len(q.events) == maxQueued; dropped {
		q.events = q.events[1:]
		q.missed++
	}
	q.events = append(q.events, e)
	return dropped
}

func (n *notifier) deliver(to *shared) {
	done := false
	defer func() {
		if !done {
			go n.deliver(to) // OnEvent has called Goexit, which loses only that event
		}
	}()
	for e, ok := n.next(); ok; e, ok = n.next() {
		if to.log != nil {
			to.write(e)
		}
		if to.onEvent != nil {
			to.onEvent(e)
		}
	}
	done = true
}

func (n *notifier) next() (Event, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	q := n.queue
	if len(q.events) == 0 {
		close(q.empty)
		n.queue = nil
		return Event{}, false
	}
	e := q.events[0]
	q.events = q.events[1:]
	e.Missed, q.missed = q.missed, 0
	return e, true
}

// write logs an event. It logs trouble, alarms and waits with the same cause less and less often.
func (f *shared) write(e Event) {
	attrs := []slog.Attr{slog.String("election", e.Election), slog.String("id", e.ID)}
	if e.Term != 0 {
		attrs = append(attrs, slog.Uint64("term", e.Term))
	}
	if e.Kind == EventLeader && e.Leader.Exists() {
		attrs = append(attrs, slog.String("leader", e.Leader.ID))
	}
	if e.Cause != nil {
		attrs = append(attrs, slog.Any("cause", e.Cause), slog.String("reason", string(ReasonOf(e.Cause))))
	}
	if !e.Until.IsZero() {
		attrs = append(attrs, slog.Time("until", e.Until))
	}
	if e.Kind == EventTrouble || e.Kind == EventAlarm || e.Kind == EventWaiting {
		times := f.countTrouble(e)
		if times == 0 {
			return
		}
		if times > 1 {
			attrs = append(attrs, slog.Int("times", times))
		}
	}
	f.log.LogAttrs(context.Background(), e.level(), e.message(), attrs...)
}

// message is the message of an event in the log.
func (e Event) message() string {
	if e.Kind == EventLeader && !e.Leader.Exists() {
		return "tenure: nobody leads"
	}
	return "tenure: " + string(e.Kind)
}

// countTrouble returns how many events had the same cause since that cause was last logged; 0 if
// this event need not be logged. If the lease is known to be too short, late answers count for that
// cause.
func (f *shared) countTrouble(e Event) (times int) {
	const short = "short lease"
	now := f.clock.Now().Mono
	var found *ShortLeaseError
	switch {
	case e.Cause == nil:
		return f.troubleLog.Admit("", now)
	case e.Kind == EventAlarm, e.Kind == EventWaiting:
		return f.troubleLog.Admit(string(e.Kind)+": "+loglimit.Cause(e.Cause.Error(), e.Election), now)
	case errors.As(e.Cause, &found):
		return f.troubleLog.Admit(short, now)
	case isTimeout(e.Cause) && f.troubleLog.Joins(short, now):
		return 0
	}
	return f.troubleLog.Admit(loglimit.Cause(e.Cause.Error(), e.Election), now)
}

// flushWithin bounds how long Run waits for OnEvent before it returns, because OnEvent may itself
// wait for Run.
const flushWithin = time.Second

// flush waits until all events are delivered, or for flushWithin.
func (n *notifier) flush() {
	n.mu.Lock()
	q := n.queue
	n.mu.Unlock()
	if q == nil {
		return
	}
	timer := time.NewTimer(flushWithin)
	defer timer.Stop()
	select {
	case <-q.empty:
	case <-timer.C:
	}
}

// waitError is the cause of an EventWaiting.
type waitError struct {
	reason Reason // if it wraps no other error
	is     error
	text   string
}

func (e *waitError) Error() string { return e.text }
func (e *waitError) Unwrap() error { return e.is }

// waits has the cause of the event for each reason to wait. A timed wait ends by itself.
var waits = map[protocol.Wait]struct {
	cause waitError
	timed bool
}{
	protocol.WaitVacant: {waitError{reason: "vacant", text: "no record shows which candidate led last: " +
		"candidates wait for the longer of their lease and the record's, since a leader whose record was deleted may still trust its lease"}, true},
	protocol.WaitMalformed: {waitError{is: protocol.ErrMalformed,
		text: "the record is malformed: candidates wait for the lease that it shows or may hide, and then claim over it"}, true},
	protocol.WaitForeign: {waitError{is: protocol.ErrForeign,
		text: "the key holds bytes of another program: no candidate overwrites them, so nobody leads until an operator removes them"}, false},
	protocol.WaitUnproven: {waitError{reason: "unproven", text: "later records may be missing from the store, " +
		"as after a restore or a failover: candidates wait for the longest lease that they know, since another leader may still trust its lease"}, true},
	protocol.WaitSameID: {waitError{reason: "same-id", text: "the record names the ID of this candidate: " +
		"an earlier run of it, or another process with the same ID, may still trust its lease"}, true},
	protocol.WaitNamesake: {waitError{reason: "same-id", text: "the leader has the ID of this candidate: " +
		"give each its own, since logs and hand-overs cannot tell them apart"}, false},
	protocol.WaitOtherLease: {waitError{reason: "other-lease", text: "the leader has another lease than this candidate"}, false},
	protocol.WaitIneligible: {waitError{is: ErrIneligible,
		text: "nobody leads, and this candidate is not eligible: it claims nothing until it is"}, false},
	protocol.WaitNomineeOnly: {waitError{reason: "not-nominee",
		text: "nobody leads, and this candidate is not the nominee: with Nomination.Only it claims nothing until it is"}, false},
}

// noteWait posts an event if this candidate has begun to wait, or waits for another reason.
func (m *runner) noteWait(now clock.Reading) {
	why, certain := m.machine.Wait(now)
	if !certain || why == m.waits {
		return
	}
	m.waits = why
	w, ok := waits[why]
	if !ok {
		return
	}
	if c, _ := m.machine.InView(); why == protocol.WaitVacant && errors.Is(c.Problem, driver.ErrUnwritten) {
		w.cause.text += "; " + c.Problem.Error()
	}
	if why == protocol.WaitOtherLease {
		w.cause.text = m.otherLease()
	}
	e := Event{Time: now.Wall, Kind: EventWaiting, Cause: &w.cause}
	if w.timed {
		e.Until = now.Wall.Add(m.machine.StandsFor(now))
	}
	m.post(e)
}

// otherLease explains the wait for a leader whose lease is not that of this candidate.
func (m *runner) otherLease() string {
	c, _ := m.machine.InView()
	own := m.settings.machine.Lease
	return fmt.Sprintf("the leader %s has a lease of %v, and this candidate one of %v: "+
		"if the leader dies, this candidate takes over only after the longer one, %v; give all candidates of an election the same lease",
		c.Record.LeaderID, c.Record.Lease, own, max(c.Record.Lease, own))
}
