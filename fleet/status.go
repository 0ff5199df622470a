package fleet

import (
	"slices"

	"github.com/tenure-go/tenure"
)

// Member is one that takes part in a fleet and holds a seat.
type Member struct {
	// Seat is its number, from 0.
	Seat int
	// ID, Address and Metadata are those of its Config.Election.
	tenure.Leader
	// Counts is false while it has just come: no elections are meant for it yet.
	Counts bool
	// Self is this process.
	Self bool
}

// Status is a snapshot.
type Status struct {
	// Members are those who hold seats, as far as this one knows, by seat; none without Spread.
	Members []Member
	// Elections is how many there are, Meant how many this member is meant to lead, Led how many it does, and Moving how many of these it is yet
	// to hand over.
	Elections, Meant, Led, Moving int
}

// Status returns a snapshot and a channel that is closed at the next change of it. It does not call the store.
func (f *Fleet) Status() (Status, <-chan struct{}) {
	var holders map[int]tenure.Leader
	if f.seats != nil {
		holders = f.seats.holders()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	s := Status{Elections: len(f.entries), Led: f.led, Moving: f.moves.left()}
	for _, e := range f.entries {
		if e.meant {
			s.Meant++
		}
	}
	if f.run != nil {
		for n, l := range holders {
			s.Members = append(s.Members, Member{
				Seat: n, Leader: l, Counts: slices.Contains(f.counted, n), Self: n == f.roster.own.seat,
			})
		}
	}
	slices.SortFunc(s.Members, func(a, b Member) int { return a.Seat - b.Seat })
	if f.changed == nil {
		f.changed = make(chan struct{})
	}
	return s, f.changed
}

// show tells those who wait for a change. It runs under the lock.
func (f *Fleet) show() {
	if f.changed != nil {
		close(f.changed)
		f.changed = nil
	}
}

// Led returns the names of the elections that this member leads: those for which lead is being called.
func (f *Fleet) Led() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var names []string
	for _, e := range f.entries {
		if e.led {
			names = append(names, e.election.Name())
		}
	}
	return names
}
