package fleet

import (
	"slices"

	"github.com/tenure-go/tenure"
)

// Member is a member of a fleet that holds a seat.
type Member struct {
	// Seat is the number of the seat, from 0.
	Seat int
	// Leader has the ID, Address and Metadata of its Config.Election.
	tenure.Leader
	// Counts is false while the member is new: no elections are assigned to it yet.
	Counts bool
	// Self is true for this process.
	Self bool
}

// Status is a snapshot of a fleet, as this member knows it. With Spread, this member has settled
// when Led equals Assigned and Moving is 0. A member that is cut off may show its last assignment
// for a while; when it has lost its seat, no Member is Self.
type Status struct {
	// Members are the holders of seats, as far as this member knows, in the order of seats; none
	// without Spread.
	Members []Member
	// Elections is the number of elections.
	Elections int
	// Assigned is how many of them are assigned to this member; 0 without Spread.
	Assigned int
	// Led is how many elections this member leads. One that SetElections removed counts until its
	// work has stopped.
	Led int
	// Moving is how many elections this member is handing over, or still has to.
	Moving int
}

// Changed returns a channel that is closed at the next change of Status. Call it before Status, so
// that you miss no change.
func (f *Fleet) Changed() <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.changed == nil {
		f.changed = make(chan struct{})
	}
	return f.changed
}

// Status returns a snapshot. It does not call the store.
func (f *Fleet) Status() Status {
	var holders map[int]tenure.Leader
	if f.seats != nil {
		holders = f.seats.holders()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	s := Status{Elections: len(f.entries), Led: f.led, Moving: f.moves.remaining()}
	for _, e := range f.entries {
		if e.assigned {
			s.Assigned++
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
	return s
}

// notifyChanged closes the channel of Changed. It runs under the lock.
func (f *Fleet) notifyChanged() {
	if f.changed != nil {
		close(f.changed)
		f.changed = nil
	}
}

// Led returns the sorted names of the elections that this member leads: the handler's Elected was
// called for them, and the work has not stopped. It leaves out those that SetElections removed.
func (f *Fleet) Led() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var names []string
	for _, e := range f.entries {
		if e.isLed {
			names = append(names, e.election.Name())
		}
	}
	return names
}
