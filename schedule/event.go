package schedule

import (
	"context"
	"log/slog"
	"time"

	"github.com/tenure-go/tenure/schedule/internal/ticks"
)

// EventKind is the kind of an event.
type EventKind string

// The kinds, with the level at which Config.Logger has them.
const (
	EventStarted  EventKind = "started"  // a run begins. Info
	EventFinished EventKind = "finished" // a run has ended well. Info
	EventFailed   EventKind = "failed"   // a run returned an error, or took too long. Error
	EventMissed   EventKind = "missed"   // ticks never start; Reason is late or overlap. Warning
	EventLost     EventKind = "lost"     // the end of a run is not known. Error
	EventPlan     EventKind = "plan"     // another schedule replaced the one in the store. Info
	// EventHistory: the job is new, or the store's history changed. No tick planned before Until
	// starts. Warning.
	EventHistory EventKind = "history"
	// EventClock: the wall clocks of two members differ by more than twice ClockOffset. Error.
	EventClock EventKind = "clock"
	// EventTrouble: the state of a job cannot be read or written; it is tried again. Warning.
	EventTrouble EventKind = "trouble"
)

// Event is something that happened to a job. Fields that do not apply are zero.
type Event struct {
	Time     time.Time
	Kind     EventKind
	Election string
	Job      string
	// Planned is the planned instant of the tick, or of the last one of Count.
	Planned time.Time
	Count   int
	// Attempt is that of the run: from 1. The log has it from 2.
	Attempt int
	Token   uint64
	Took    time.Duration
	Until   time.Time
	Reason  string
	Err     error
}

func (e Event) level() slog.Level {
	switch e.Kind {
	case EventFailed, EventLost, EventClock:
		return slog.LevelError
	case EventMissed, EventHistory, EventTrouble:
		return slog.LevelWarn
	case EventStarted, EventFinished, EventPlan:
	}
	return slog.LevelInfo
}

func (l *leading) tell(j *job, e Event) {
	e.Time, e.Election, e.Job, e.Token = l.now(), l.election, j.Name, l.term.Token()
	j.meter.count(&e)
	if l.cfg.OnEvent != nil {
		l.cfg.OnEvent(e)
	}
	if l.cfg.Logger == nil {
		return
	}
	attrs := []slog.Attr{slog.String("election", e.Election), slog.String("job", e.Job), slog.Uint64("token", e.Token)}
	if !e.Planned.IsZero() {
		attrs = append(attrs, slog.Time("planned", e.Planned))
	}
	if !e.Until.IsZero() {
		attrs = append(attrs, slog.Time("until", e.Until))
	}
	if e.Count > 0 {
		attrs = append(attrs, slog.Int("count", e.Count))
	}
	if e.Attempt > 1 {
		attrs = append(attrs, slog.Int("attempt", e.Attempt))
	}
	if e.Took > 0 {
		attrs = append(attrs, slog.Duration("took", e.Took))
	}
	if e.Reason != "" {
		attrs = append(attrs, slog.String("reason", e.Reason))
	}
	if e.Err != nil {
		attrs = append(attrs, slog.Any("error", e.Err))
	}
	l.cfg.Logger.LogAttrs(context.Background(), e.level(), "schedule: "+string(e.Kind), attrs...)
}

// tellAll passes on the events of the code that decides. Their kinds have the same names.
func (l *leading) tellAll(j *job, events []ticks.Event) {
	for _, e := range events {
		l.tell(j, Event{Kind: EventKind(e.Kind), Planned: e.Planned, Count: e.Count, Reason: e.Reason, Until: e.Until})
	}
}
