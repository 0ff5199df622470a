package ticks

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/tenure-go/tenure/driver"
)

// Format is the name of the format of a State.
const Format = "tenure-ticks/1"

// maxTicks is the number of ticks that a State keeps, if there is room for them. maxError is the
// size in bytes of the longest text of an error in it.
const (
	maxTicks = 16
	maxError = 120
)

// ErrForeign reports that the cell holds bytes that are not a State of this format. No job
// overwrites them, and no tick runs.
var ErrForeign = errors.New("the key holds bytes that are not the state of a job")

// State is the state of one job: what the store's cell holds.
type State struct {
	// Seq grows by 1 with each write. Nonce is new in each.
	Seq   uint64 `json:"seq"`
	Nonce string `json:"nonce"`
	// Draft marks the first write in an empty cell. It is believed no more than the empty cell,
	// because the network may deliver that write again after the key was deleted (J5).
	Draft bool `json:"draft,omitempty"`
	// Era names the history of the store, as the writer saw it (driver.Entry.Era).
	Era uint64 `json:"era,string,omitempty"`
	// At is when it was written, by the wall clock of the writer, and ID names the writer.
	At time.Time `json:"at"`
	ID string    `json:"id"`
	// Token is that of the writer's term.
	Token uint64 `json:"token"`
	// Plan is the text of the schedule and its zone.
	Plan string `json:"plan"`
	// After: the ticks planned until then are decided, by the clock of the writer. Only later ones
	// may start. A member lowers it if it is too far ahead of its own clock (J6).
	After time.Time `json:"after"`
	// Over: no tick planned until then ever starts (again), whatever any clock shows (J5, J10).
	Over time.Time `json:"over"`
	// Next is the planned instant of the next tick, as of At; zero if there is none. It is for
	// people, and decides nothing.
	Next time.Time `json:"next,omitzero"`
	// Success is the last success. It is for people and alerts, and decides nothing.
	Success Success `json:"success,omitzero"`
	// Ticks are the last ticks that were started, in the order of their planned instants.
	Ticks []Tick `json:"ticks,omitempty"`
	// Missed counts the ticks that never started.
	Missed Missed `json:"missed"`
	// Day counts the ticks of the last day.
	Day Day `json:"day,omitzero"`
}

// Tick is one tick that was started.
type Tick struct {
	// Planned orders the ticks, and identifies those without a name. It is the start of an
	// Invocation.
	Planned time.Time `json:"planned"`
	// Name identifies the tick of an Invocation, if it has one.
	Name  string `json:"name,omitempty"`
	State Phase  `json:"state"`
	// Token is that of the leader that started it, Lead names the leader's term, and ID the leader.
	Token uint64 `json:"token"`
	Lead  string `json:"lead,omitempty"`
	ID    string `json:"id"`
	// Began and Ended are by the wall clocks of the writers. Ended is zero while it is Started.
	Began time.Time `json:"began"`
	Ended time.Time `json:"ended,omitzero"`
	// Attempt is 1, and grows each time the tick is started again (J4).
	Attempt int `json:"attempt"`
	// Code is the exit code of a program, and Error the beginning of the error of a run that
	// failed.
	Code  int    `json:"code,omitempty"`
	Error string `json:"error,omitempty"`
}

// Success is the last run that finished, also if its tick was dropped since.
type Success struct {
	// Ended is when it ended; zero if no run has finished.
	Ended time.Time `json:"ended,omitzero"`
	// Since is the planned instant of its tick, or later when the schedule began. The ticks after
	// it should succeed.
	Since time.Time `json:"since"`
}

// Phase says how far a tick has come.
type Phase string

// The phases.
const (
	Started  Phase = "started"
	Finished Phase = "finished"
	Failed   Phase = "failed"
	// Lost: its leader's term ended before the end of the run was recorded.
	Lost Phase = "lost"
)

// Missed counts ticks that never started, by reason, since the state was created.
type Missed struct {
	// Late: no leader waited for them, and the policy did not let them run late (J7).
	Late int `json:"late,omitempty"`
	// Overlap: they came due during a run (J8).
	Overlap int `json:"overlap,omitempty"`
	// Last is the planned instant of the last one.
	Last time.Time `json:"last,omitzero"`
}

// Decode returns the state of a cell, or an error that wraps ErrForeign.
func Decode(value []byte) (State, error) {
	var w wire
	if err := json.Unmarshal(value, &w); err != nil {
		return State{}, fmt.Errorf("%w: %w", ErrForeign, err)
	}
	if w.Format != Format {
		return State{}, fmt.Errorf("%w: its format is %.40q, not %q", ErrForeign, w.Format, Format)
	}
	return w.State, nil
}

// Read is Decode for an entry. If the store says more about foreign bytes, so does the error.
func Read(e driver.Entry) (State, error) {
	s, err := Decode(e.Value)
	if err != nil && e.Notice != nil {
		err = fmt.Errorf("%w: %w", ErrForeign, e.Notice)
	}
	return s, err
}

// Is reports whether a value has the format of a State.
func Is(value []byte) bool {
	_, err := Decode(value)
	return err == nil
}

type wire struct {
	Format string `json:"format"`
	State
}

// encode returns the value for the cell. It drops old ticks until the rest fits, and raises Over to
// each of them (J10). A tick that may run at present stays.
func (s *State) encode() ([]byte, error) {
	for {
		value, err := json.Marshal(wire{Format, *s})
		if err != nil {
			return nil, err
		}
		if len(s.Ticks) <= maxTicks && len(value) <= driver.MaxValue {
			return value, nil
		}
		i := slices.IndexFunc(s.Ticks, func(t Tick) bool { return t.State != Started })
		if i < 0 {
			return nil, fmt.Errorf("the state has %d bytes, of at most %d", len(value), driver.MaxValue)
		}
		s.Over = later(s.Over, s.Ticks[i].Planned)
		s.Ticks = slices.Delete(s.Ticks, i, i+1)
	}
}

// find returns the tick of a planned instant, or nil.
func (s *State) find(planned time.Time) *Tick {
	for i := range s.Ticks {
		if s.Ticks[i].Planned.Equal(planned) {
			return &s.Ticks[i]
		}
	}
	return nil
}

// put adds the tick, or replaces that of the same planned instant.
func (s *State) put(t Tick) {
	i, found := slices.BinarySearchFunc(s.Ticks, t, func(a, b Tick) int { return a.Planned.Compare(b.Planned) })
	if found {
		s.Ticks[i] = t
		return
	}
	s.Ticks = slices.Insert(s.Ticks, i, t)
}

// floor returns the instant after which ticks may start.
func (s *State) floor() time.Time { return later(s.After, s.Over) }

// miss counts a tick that never starts.
func (m *Missed) miss(n *int, planned time.Time) {
	*n++
	m.Last = later(m.Last, planned)
}

func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

// cut returns the beginning of a text.
func cut(s string) string {
	if len(s) <= maxError {
		return s
	}
	s = s[:maxError]
	for !utf8.ValidString(s) {
		s = s[:len(s)-1]
	}
	return s
}
