package fleet

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tenure-go/tenure"
)

// SetElections replaces the list of elections, whether the fleet runs or not. This member begins to
// take part in new ones. It stops claiming and reading elections that are no longer named. If it
// leads one of them, it asks the work of that election to finish. SetElections waits for none of
// that. An election that was removed keeps its memory until it has ended.
//
// Members may have different elections for a while, for example during a roll-out. That costs only
// time: if the assigned member does not take part in an election, another member claims it after
// the Precedence.
//
// Its errors are those of New for names. After an error nothing has changed.
func (f *Fleet) SetElections(names []string) error {
	if err := invalid(f.name, checkNames(f.name, names)); err != nil {
		return err
	}
	f.changing.Lock()
	defer f.changing.Unlock()
	fresh, err := f.makeEntries(f.missing(names))
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.keepOnly(names)
	f.insert(f.returned(names))
	f.insert(fresh)
	if f.run != nil {
		f.run.add(fresh)
		f.assign(f.counted, f.seat, false)
	}
	f.wake()
	f.notifyChanged()
	return nil
}

// Election returns the fleet's election of this name, or nil if it has none. Use it for its Status
// or to ask for a hand-over; do not campaign in it, because the fleet does. A process outside of
// the fleet, such as a router, follows an election of this name with tenure.New, or many with
// tenure.NewGroup.
func (f *Fleet) Election(name string) *tenure.Election {
	f.mu.Lock()
	defer f.mu.Unlock()
	if i, ok := f.find(name); ok {
		return f.entries[i].election
	}
	return nil
}

func (f *Fleet) makeEntries(names []string) ([]*entry, error) {
	all := make([]*entry, 0, len(names))
	for _, name := range names {
		e, err := f.makeEntry(name)
		if err != nil {
			for _, e := range all {
				e.group.Leave(e.election)
			}
			return nil, err
		}
		all = append(all, e)
	}
	return all, nil
}

// makeEntry makes the election, in the group with its kind of settings. The group asks for its
// Nominator in this call.
func (f *Fleet) makeEntry(name string) (e *entry, err error) {
	e = &entry{fleet: f, hash: hashOf(name)}
	f.making, e.group = e, f.groups[e.hash%settingsKinds]
	e.election, err = e.group.Election(name)
	return e, err
}

// insert is called under the lock, or before the fleet is shared.
func (f *Fleet) insert(more []*entry) {
	f.entries = append(f.entries, more...)
	slices.SortFunc(f.entries, func(a, b *entry) int { return strings.Compare(a.election.Name(), b.election.Name()) })
}

// find is called under the lock.
func (f *Fleet) find(name string) (int, bool) {
	return slices.BinarySearchFunc(f.entries, name, func(e *entry, name string) int {
		return strings.Compare(e.election.Name(), name)
	})
}

// missing returns the names for which the fleet has no entry, not even a removed one.
func (f *Fleet) missing(names []string) []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		_, ok := f.find(name)
		return ok || f.leaving[name] != nil
	})
}

// returned returns the removed entries with these names, which the fleet takes back. They start
// again when they have ended. It is called under the lock.
func (f *Fleet) returned(names []string) []*entry {
	var all []*entry
	for _, name := range names {
		if e := f.leaving[name]; e != nil && e.removed {
			e.removed = false
			all = append(all, e)
		}
	}
	return all
}

// keepOnly removes the entries of all other names. It is called under the lock.
func (f *Fleet) keepOnly(names []string) {
	wanted := map[string]bool{}
	for _, name := range names {
		wanted[name] = true
	}
	f.entries = slices.DeleteFunc(f.entries, func(e *entry) bool {
		name := e.election.Name()
		if wanted[name] {
			return false
		}
		e.removed, e.assigned = true, false
		e.group.Leave(e.election)
		if e.done != nil {
			e.setNominated(false)
			f.leaving[name] = e
		}
		return true
	})
}

// entry is one election of a fleet, and its Nominator. The fields from done on are under the
// fleet's lock.
type entry struct {
	fleet    *Fleet
	hash     uint64
	group    *tenure.Group
	election *tenure.Election

	done       <-chan error // nil before the start and after the end
	see        func(nominated bool)
	assigned   bool // the assignment names this member
	isNominee  bool // the last argument that see received
	isLed      bool // the work of a term is under way
	queued     bool // it is to be handed over
	ineligible bool // it waits until it may claim
	removed    bool // SetElections has removed it
}

// Nominate implements nomination.Nominator.
func (e *entry) Nominate(see func(nominated bool)) (stop func()) {
	f := e.fleet
	f.mu.Lock()
	defer f.mu.Unlock()
	e.see = see
	see(e.isNominee)
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		e.see = nil
	}
}

// setNominated nominates this member, or ends the nomination. It runs under the fleet's lock, which
// the election's see does not take.
func (e *entry) setNominated(nominated bool) {
	if e.isNominee == nominated {
		return
	}
	e.isNominee = nominated
	if e.see != nil {
		e.see(nominated)
	}
	if s := e.fleet.run; !nominated && s != nil {
		s.makeIneligible(e)
	}
}

// setAssigned sets whether the election is assigned to this member. A leader stays the nominee
// until its hand-over is due, so that no other member asks for it earlier.
func (e *entry) setAssigned(me bool) {
	e.assigned = me
	switch {
	case me:
		e.setNominated(true)
	case e.isNominee && e.isLed:
		e.fleet.moves.add(e)
	default:
		e.setNominated(false)
	}
}

// trackedWork is the work of an election's terms, and records whether it runs. If the work ends
// before it was asked to finish, trackedWork returns ErrDecline, so that this member campaigns
// again after a back-off.
type trackedWork struct {
	*entry
	work tenure.Handler
}

// Elected implements tenure.Handler.
func (w *trackedWork) Elected(ctx context.Context, t *tenure.Term) (stop func(context.Context) error, err error) {
	w.leads(true)
	defer func() { // also after Goexit
		if stop == nil {
			w.leads(false)
		}
	}()
	stopWork, err := w.work.Elected(ctx, t)
	switch {
	case err == nil && stopWork != nil:
		return func(ctx context.Context) error {
			defer w.leads(false)
			return stopWork(ctx)
		}, nil
	case ctx.Err() != nil:
		return nil, err
	}
	return nil, decline(err)
}

func decline(err error) error {
	if err == nil || errors.Is(err, tenure.ErrDecline) {
		return tenure.ErrDecline
	}
	return fmt.Errorf("%w: %w", tenure.ErrDecline, err)
}

// leads records whether the work of a term runs. If the election is assigned to another member by
// now, it has to be handed over.
func (e *entry) leads(yes bool) {
	f := e.fleet
	f.mu.Lock()
	defer f.mu.Unlock()
	e.count(yes)
	if yes {
		e.setAssigned(e.assigned)
	}
}

// count is called under the lock.
func (e *entry) count(led bool) {
	f := e.fleet
	switch {
	case led == e.isLed:
		return
	case led:
		f.led++
	default:
		f.led--
	}
	e.isLed = led
	f.notifyChanged()
}
