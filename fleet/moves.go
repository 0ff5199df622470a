package fleet

import (
	"context"
	"time"

	"github.com/tenure-go/tenure"
)

// moves are the elections that this member leads and that are assigned to another. It hands over
// only a few at a time. Otherwise a new member would make thousands of leaders stop and start at
// the same moment. All fields are under the fleet's lock.
type moves struct {
	fleet      *Fleet
	queue      []*entry
	busy       int           // how many goroutines hand over an election
	waitWithin time.Duration // how long to wait for one hand-over
	ctx        context.Context
	stopWaits  context.CancelFunc // ends ctx, and with it all waits
	ending     bool               // this member is ending: wait only for the release
}

func (m *moves) begin(ctx context.Context, patience time.Duration) {
	m.ctx, m.stopWaits = context.WithCancel(ctx)
	m.waitWithin, m.queue, m.ending = patience, nil, false
}

// hurry hands over the remaining elections faster, because a process that ends cannot wait for
// each.
func (m *moves) hurry(ctx context.Context) {
	m.stopWaits()
	m.ctx, m.stopWaits = context.WithCancel(ctx)
	m.waitWithin, m.ending = endingWaitWithin, true
}

// endingWaitWithin is how long a member that ends waits for each hand-over. With the default of
// HandOvers, it asks the work of a thousand elections to finish within 4 s.
const endingWaitWithin = 200 * time.Millisecond

// add queues an election that this member leads as the nominee.
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

// work hands over one election after another.
func (m *moves) work() {
	for e, wait := m.next(); e != nil; e, wait = m.next() {
		wait(e.election)
	}
}

// next ends the nomination for the next election, and returns that election with a function that
// waits for its hand-over. If none is left, it wakes the fleet.
func (m *moves) next() (*entry, func(*tenure.Election)) {
	f := m.fleet
	f.mu.Lock()
	defer f.mu.Unlock()
	f.notifyChanged()
	for len(m.queue) > 0 {
		e := m.queue[0]
		m.queue = m.queue[1:]
		e.queued = false
		if !e.assigned && e.isNominee {
			e.setNominated(false)
			return e, m.waitFunc()
		}
	}
	m.busy--
	f.wake()
	return nil, nil
}

// waitFunc returns a function that waits until another member leads. If this member is ending, it
// waits only for the release.
func (m *moves) waitFunc() func(*tenure.Election) {
	ctx, patience, leaving := m.ctx, m.waitWithin, m.ending
	return func(e *tenure.Election) {
		ctx, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		// after any outcome the next election follows
		_, _ = e.Wait(ctx, func(s tenure.Status) bool {
			return s.State == tenure.StateCandidate && (leaving || s.Leader.Exists()) || s.State == tenure.StateIdle
		})
	}
}

// done reports whether nothing is left to hand over.
func (m *moves) done() bool { return m.remaining() == 0 }

// remaining returns how many elections are being handed over or have yet to be.
func (m *moves) remaining() int { return m.busy + len(m.queue) }
