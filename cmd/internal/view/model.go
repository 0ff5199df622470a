package view

import (
	"slices"
	"time"

	"github.com/tenure-go/tenure/cmd/internal/output"
)

// Bounds of the history, each more than the largest terminal shows.
const (
	maxTerms   = 1000
	maxMarks   = 1000
	maxChanges = 200
	maxNews    = 200
)

// Model is the state that follows from all facts so far. Only one goroutine may use it at a time.
type Model struct {
	screen  Screen
	ink     palette
	began   time.Time // the times below count from here
	members []*member
	terms   []term
	seen    int // how many terms there were
	marks   []mark
	changes []change
	news    []Fact

	renewal  renewal
	vacant   string    // the reason why there is no leader, if it is known
	expected time.Time // until when that is normal
	overlaps int
	checked  string
}

// New returns a model without facts.
func New(s Screen) *Model {
	m := &Model{screen: s, ink: palette(s.Colour), began: s.Began}
	m.screen.Title, m.screen.Place, m.screen.Election = output.Plain(s.Title), output.Plain(s.Place), output.Plain(s.Election)
	for _, id := range s.Members {
		m.member(output.Plain(id))
	}
	return m
}

// mark is a sign on the timeline.
type mark struct {
	at   time.Duration
	who  string
	what What
}

// change is a change of leader.
type change struct {
	from, to string
	fact     Fact
}

// renewal is the last renewal that was seen.
type renewal struct {
	term    uint64
	at      time.Duration
	lease   time.Duration
	address string
}

// since returns the time from the beginning to a moment.
func (m *Model) since(at time.Time) time.Duration { return at.Sub(m.began) }

// bound returns the newest n if there are more than 2n, and all otherwise.
func bound[T any](all []T, n int) []T {
	if len(all) <= 2*n {
		return all
	}
	return slices.Clone(last(all, n))
}

// last returns the newest n.
func last[T any](all []T, n int) []T {
	return all[max(0, len(all)-n):]
}
