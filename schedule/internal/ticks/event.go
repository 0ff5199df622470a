package ticks

import "time"

// Kind is the kind of an event.
type Kind string

// The kinds.
const (
	// Missed ticks never start; Reason is ReasonLate or ReasonOverlap.
	EventMissed Kind = "missed"
	// EventLost: a run of an earlier term has no recorded end.
	EventLost Kind = "lost"
	// EventClock: the wall clocks of two members differ too much (J6).
	EventClock Kind = "clock"
	// EventHistory: the history of the store changed, or the job is new (J5).
	EventHistory Kind = "history"
	// EventPlan: another schedule replaced that in the state.
	EventPlan Kind = "plan"
)

// The reasons of EventMissed.
const (
	ReasonLate    = "late"
	ReasonOverlap = "overlap"
)

// Event is something that people may have to know.
type Event struct {
	Kind Kind
	// Planned is the planned instant of the tick, or of the last one of Count.
	Planned time.Time
	Count   int
	// Reason is a text for people.
	Reason string
	// Until: no tick planned until then starts, in EventHistory.
	Until time.Time
}
