package fleet

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver"
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
	if err := checkNames(f.name, names); err != nil {
		return fmt.Errorf("fleet: %q: %w", f.name, err)
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
		e := &entry{fleet: f, hash: hashOf(name)}
		if err := f.makeElection(e, name); err != nil {
			return nil, err
		}
		all = append(all, e)
	}
	return all, nil
}

// makeElection makes the election, in the group with its kind of settings.
func (f *Fleet) makeElection(e *entry, name string) (err error) {
	var by driver.Nominator
	if f.cfg.Spread {
		by = e
	}
	e.group = f.groups[e.hash%settingsKinds]
	e.election, err = e.group.Election(name, by)
	return err
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
		return ok || f.removed[name] != nil
	})
}

// returned returns the removed entries with these names, which the fleet takes back. It is called
// under the lock.
func (f *Fleet) returned(names []string) []*entry {
	var all []*entry
	for _, name := range names {
		if e := f.removed[name]; e != nil {
			delete(f.removed, name)
			e.removed = false
			f.run.toRestart = append(f.run.toRestart, e)
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
		if e.done != nil {
			e.setNominated(false)
			e.group.Leave(e.election)
			f.removed[name] = e
		}
		return true
	})
}
