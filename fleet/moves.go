package fleet

import (
	"context"
	"time"

	"github.com/tenure-go/tenure"
)

// moves are the elections that this member leads and another is meant to lead. It gives them away
// so many at a time; without that, one that joins would have thousands of leaders stop and start in
// the same moment. All fields are under the fleet's lock.
type moves struct {
	fleet    *Fleet
	queue    []*entry
	busy     int           // how many are being handed over, by a goroutine each
	patience time.Duration // how long one of them is waited for
	ctx      context.Context
	hurry    context.CancelFunc // ends ctx, and with it all waits
	leaving  bool               // no other member needs to lead yet
}

func (m *moves) begin(ctx context.Context, patience time.Duration) {
	m.ctx, m.hurry = context.WithCancel(ctx)
	m.patience, m.queue, m.leaving = patience, nil, false
}

// leave hands the rest over faster: a process that ends cannot wait for each.
func (m *moves) leave(ctx context.Context) {
	m.hurry()
	m.ctx, m.hurry = context.WithCancel(ctx)
	m.patience, m.leaving = leaveWithin, true
}

// leaveWithin is how long a member that leaves waits for each: at the default a thousand are asked
// within 4 s, however long their work takes to finish.
const leaveWithin = 200 * time.Millisecond

// add takes an election that is led and named.
func (m *moves) add(e *entry) {
	if e.queued {
		return
	}
	e.queued = true
	m.queue = append(m.queue, e)
	if m.busy < m.fleet.cfg.HandOvers {
		m.busy++
		go m.work()
	}
}

// work hands over one after another.
func (m *moves) work() {
	for e, wait := m.next(); e != nil; e, wait = m.next() {
		wait(e.election)
	}
}

// next ends the nomination of the next one, and returns it with a function that waits for its
// hand-over. The last worker reports that none is left.
func (m *moves) next() (*entry, func(*tenure.Election)) {
	f := m.fleet
	f.mu.Lock()
	defer f.mu.Unlock()
	for len(m.queue) > 0 {
		e := m.queue[0]
		m.queue = m.queue[1:]
		e.queued = false
		if !e.assigned && e.named {
			e.setNominated(false)
			return e, m.waiting()
		}
	}
	m.busy--
	f.wake()
	f.show()
	return nil, nil
}

// waiting waits until another leads, or the election is released where that must do.
func (m *moves) waiting() func(*tenure.Election) {
	ctx, patience, leaving := m.ctx, m.patience, m.leaving
	return func(e *tenure.Election) {
		ctx, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		// after any outcome it is the next one's turn
		_, _ = e.Wait(ctx, func(s tenure.Status) bool {
			return s.State == tenure.StateCandidate && (leaving || s.Leader.Exists()) || s.State == tenure.StateIdle
		})
	}
}

// done reports whether nothing is left to hand over.
func (m *moves) done() bool { return m.left() == 0 }

// left is how many are yet to be handed over, or are just being.
func (m *moves) left() int { return m.busy + len(m.queue) }
