package schedule

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/schedule/internal/ticks"
)

// ErrNoState is returned by Read if the store has no state of the job.
var ErrNoState = errors.New("schedule: the job has no state in the store")

// Status is the state of a job as the store shows it. Times are by the wall clocks of the leaders.
type Status struct {
	// Plan is the schedule and its zone.
	Plan string
	// Updated is when the leader ID last wrote it, in the term Token.
	Updated time.Time
	ID      string
	Token   uint64
	// Next is the planned instant of the next tick, as of Updated; zero if there is none. It is in
	// the past while a run goes on that is longer than the time between two ticks, and if no leader
	// has looked since.
	Next time.Time
	// LastSuccess is when the last run ended that finished; zero if none has.
	LastSuccess time.Time
	// Ticks are the last ticks that started, at most 16, in the order of their planned instants.
	Ticks []TickStatus
	// Late and Overlap count the ticks that never started since the job was first seen: no leader
	// waited for them, or they came due during a run. LastMissed is the planned instant of the
	// last one.
	Late, Overlap int
	LastMissed    time.Time
}

// TickStatus is the state of one tick.
type TickStatus struct {
	Planned time.Time
	Name    string // Invocation.Tick
	// State is started, finished, failed or lost.
	State        string
	ID           string
	Token        uint64
	Attempt      int
	Began, Ended time.Time
	// Code and Error are of a run that failed. Error has at most 120 bytes of the text.
	Code  int
	Error string
}

// Read returns the status of a job. It needs no part in the election. It returns ErrNoState, or the
// error of the store, or one that says that the key holds other bytes.
func Read(ctx context.Context, store driver.Store, election, job string) (Status, error) {
	s, err := read(ctx, store, key(election, job))
	if err != nil {
		return Status{}, err
	}
	st := Status{
		Plan: s.Plan, Updated: s.At, ID: s.ID, Token: s.Token,
		Late: s.Missed.Late, Overlap: s.Missed.Overlap, LastMissed: s.Missed.Last,
		Next: s.Next, LastSuccess: s.Success.Ended,
	}
	for n := range s.Ticks {
		st.Ticks = append(st.Ticks, statusOf(&s.Ticks[n]))
	}
	return st, nil
}

func read(ctx context.Context, store driver.Store, key string) (ticks.State, error) {
	e, err := store.Read(ctx, key)
	if err != nil {
		return ticks.State{}, fmt.Errorf("schedule: read key %q: %w", key, err)
	}
	if e.Absent() {
		return ticks.State{}, ErrNoState
	}
	s, err := ticks.Read(e)
	if err != nil {
		return ticks.State{}, fmt.Errorf("schedule: key %q: %w", key, err)
	}
	return s, nil
}

func statusOf(t *ticks.Tick) TickStatus {
	return TickStatus{
		Planned: t.Planned, Name: t.Name, State: string(t.State), ID: t.ID, Token: t.Token, Attempt: t.Attempt,
		Began: t.Began, Ended: t.Ended, Code: t.Code, Error: t.Error,
	}
}

// Names returns the names of the jobs of an election that have a state, sorted. It returns
// errors.ErrUnsupported if the store cannot list its keys, or the error of the store.
func Names(ctx context.Context, store driver.Store, election string) ([]string, error) {
	keys, err := driver.AbilitiesOf(store).Keys(ctx)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, k := range keys {
		if name, ok := strings.CutPrefix(k, key(election, "")); ok && name != "" && !strings.Contains(name, "/") {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names, nil
}
