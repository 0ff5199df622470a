package slots

import (
	"context"
	"iter"
	"slices"

	"github.com/tenure-go/tenure"
)

// Slot is a slot as this member knows it.
type Slot struct {
	// Number is the number of the slot, from 1.
	Number int
	// Leader is the leader of the slot, with its token as Term. It is zero if the slot is free or
	// not known yet.
	Leader tenure.Leader
	// Slots is Config.Slots of the leader, as its record shows it; 0 if it shows none.
	Slots int
	// Self is true if this member leads the slot.
	Self bool
}

// Status is a snapshot of all slots.
type Status struct {
	// Limit is the number of slots by which this member goes: the smallest one of Config.Slots and
	// of the leaders' numbers. It claims no slot above it.
	Limit int
	// Slots are the slots from 1 to Config.Slots.
	Slots []Slot
}

// Held returns the slots that this member leads.
func (s Status) Held() []Slot {
	return slices.DeleteFunc(slices.Clone(s.Slots), func(one Slot) bool { return !one.Self })
}

// Status returns the last snapshot of a Run. It does not call the store. Before the first Run all
// slots are free. After a Run the status is the last one of it.
func (m *Member) Status() Status {
	m.mu.Lock()
	defer m.mu.Unlock()
	return Status{Limit: m.status.Limit, Slots: slices.Clone(m.status.Slots)}
}

// Watch yields the present status, and then the status after each change, until ctx ends or the
// loop is left. A slow loop sees the latest status, not every one.
func (m *Member) Watch(ctx context.Context) iter.Seq[Status] {
	return func(yield func(Status) bool) {
		for {
			changed := m.nextChange()
			if !yield(m.Status()) {
				return
			}
			select {
			case <-changed:
			case <-ctx.Done():
				return
			}
		}
	}
}

// nextChange returns a channel that is closed at the next change of Status.
func (m *Member) nextChange() <-chan struct{} {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.changed == nil {
		m.changed = make(chan struct{})
	}
	return m.changed
}

// snapshot is called by the goroutine of Run, or while there is none.
func (m *Member) snapshot() Status {
	s := Status{Limit: m.limit()}
	for _, one := range m.slots {
		l := one.status.Leader
		s.Slots = append(s.Slots, Slot{Number: one.number, Leader: l, Slots: sizeOf(l), Self: one.own()})
	}
	return s
}

func (m *Member) publish(s Status) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if s.equal(&m.status) {
		return
	}
	m.status = s
	if m.changed != nil {
		close(m.changed)
		m.changed = nil
	}
}

func (s *Status) equal(o *Status) bool {
	return s.Limit == o.Limit && slices.EqualFunc(s.Slots, o.Slots, func(a, b Slot) bool {
		return a.Self == b.Self && a.Leader.Equal(b.Leader)
	})
}
