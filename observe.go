package tenure

import (
	"context"
	"iter"
	"slices"
	"sync"

	"github.com/tenure-go/tenure/clock"
	"github.com/tenure-go/tenure/internal/bridge"
)

// Watch observes the election until ctx ends or the loop is left. It does not campaign. It yields
// the status as soon as the store was read, and then after each change. A renewal alone is no
// change, though it moves LastContact and Record. A slow loop sees the latest status, not every
// one.
//
//	var last tenure.Leader
//	for status, err := range e.Watch(ctx) {
//		if err == nil && !status.Leader.Equal(last) {
//			last = status.Leader // the zero Leader: nobody leads
//		}
//	}
//
// The first leader that it yields may be dead already. If so, its lease expires by this process's
// clock, and Watch yields a status without a leader, unless it sees the next leader first.
// Status.Confirmed reports whether this process has seen the leader renew.
//
// If the store denies reading and has never allowed it, Watch yields the status with an error that
// wraps ErrDenied, and ends. After any other failure it reads again, and Status.Trouble has the
// error.
//
// Set Config.Lease of an observer to that of the candidates. The record states how long the lease
// of its leader is, but the intervals and time limits of reading follow the Config of the observer:
// on a store that does not push, it sees a change within about Tuning.PollStable.
func (e *Election) Watch(ctx context.Context) iter.Seq2[Status, error] {
	return func(yield func(Status, error) bool) {
		defer e.runner.observe()()
		changed := make(chan struct{}, 1)
		for {
			s, digest := e.runner.status()
			if (s.Known || s.Err != nil) && !yield(s, s.Err) || s.Err != nil {
				return
			}
			stop := e.runner.whenChanged(digest, func() { changed <- struct{}{} })
			select {
			case <-changed:
			case <-ctx.Done():
			}
			if ctx.Err() != nil {
				stop()
				return
			}
		}
	}
}

// Wait observes until the condition holds for the status, and returns that status. It checks the
// condition as soon as the store was read, and after each change that Watch yields. It returns
// ctx's cause if ctx ends first, or an error that wraps ErrDenied if the store denies reading and
// has never allowed it.
func (e *Election) Wait(ctx context.Context, until func(Status) bool) (Status, error) {
	for s, err := range e.Watch(ctx) {
		if err != nil || until(s) {
			return s, err
		}
	}
	return e.Status(), context.Cause(ctx)
}

// Watch observes all elections of the group, also those that Election makes later, until ctx ends
// or the loop is left. It needs one goroutine for all of them. Status.Election names the election
// of each status. For each one it yields what Election.Watch yields, in no particular order; a slow
// loop sees the latest status of each. An error is about that election alone, and the others go on.
func (g *Group) Watch(ctx context.Context) iter.Seq2[Status, error] {
	return func(yield func(Status, error) bool) {
		w := &groupWatch{watched: map[*Election]*watched{}, signal: make(chan struct{}, 1)}
		g.begin(w)
		defer g.end(w)
		for {
			for e := w.next(); e != nil && ctx.Err() == nil; e = w.next() {
				if s := w.status(e); (s.Known || s.Err != nil) && !yield(s, s.Err) {
					return
				}
			}
			select {
			case <-w.signal:
			case <-ctx.Done():
				return
			}
		}
	}
}

func (g *Group) begin(w *groupWatch) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.watches = append(g.watches, w)
	for _, e := range g.elections {
		w.add(e)
	}
}

func (g *Group) end(w *groupWatch) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.watches = slices.DeleteFunc(g.watches, func(o *groupWatch) bool { return o == w })
	for _, e := range g.elections {
		w.remove(e)
	}
}

// groupWatch is one loop over the elections of a Group.
type groupWatch struct {
	signal chan struct{} // there are changed elections

	mu      sync.Mutex
	changed []*Election
	watched map[*Election]*watched
}

// watched is one election in a groupWatch. Its fields are under the lock of the groupWatch.
type watched struct {
	unobserve func()
	changed   bool   // the election is among the changed ones
	stopWait  func() // ends the last wait for a change, or does nothing
}

func (w *groupWatch) add(e *Election) {
	one := &watched{unobserve: e.runner.observe(), stopWait: func() {}}
	w.mu.Lock()
	w.watched[e] = one
	w.mu.Unlock()
	w.noteChange(e)
}

func (w *groupWatch) remove(e *Election) {
	w.mu.Lock()
	one := w.watched[e]
	delete(w.watched, e)
	w.mu.Unlock()
	if one != nil {
		one.stopWait()
		one.unobserve()
	}
}

// noteChange is also called under the lock of the election's runner.
func (w *groupWatch) noteChange(e *Election) {
	w.mu.Lock()
	defer w.mu.Unlock()
	one := w.watched[e]
	if one == nil || one.changed {
		return
	}
	one.changed = true
	w.changed = append(w.changed, e)
	select {
	case w.signal <- struct{}{}:
	default:
	}
}

// next returns the next changed election, or nil. An election that has left is skipped; if it has
// come back since, it is listed once more.
func (w *groupWatch) next() *Election {
	w.mu.Lock()
	defer w.mu.Unlock()
	for len(w.changed) > 0 {
		e := w.changed[0]
		w.changed[0], w.changed = nil, w.changed[1:]
		if one := w.watched[e]; one != nil && one.changed {
			one.changed = false
			return e
		}
	}
	w.changed = nil
	return nil
}

// status returns the status of an election, and notes the next change of it.
func (w *groupWatch) status(e *Election) Status {
	s, digest := e.runner.status()
	stop := e.runner.whenChanged(digest, func() { w.noteChange(e) })
	w.mu.Lock()
	one := w.watched[e]
	if one != nil {
		one.stopWait = stop
	}
	w.mu.Unlock()
	if one == nil { // removed in the meantime
		stop()
	}
	return s
}

func init() {
	bridge.ShownAt = func(election any) (clock.Instant, bool) {
		m := &election.(*Election).runner
		m.mu.Lock()
		defer m.mu.Unlock()
		return m.machine.ShownAt()
	}
}

// observe keeps this process observing the election until the returned function is called.
func (m *runner) observe() (stop func()) {
	m.step(func(clock.Reading) {
		m.observers++
		m.refused = false // a new observer reads again, also for observers that were denied
		m.machine.Observe(true)
	})
	return func() {
		m.step(func(clock.Reading) {
			m.observers--
			m.machine.Observe(m.observers > 0)
		})
	}
}

// statusWaiter waits for a change of the status.
type statusWaiter struct {
	seen statusDigest // the status that it has seen
	wake func()       // called once, under the lock
}

// whenChanged calls wake once when the status differs from the digest, unless stop is called
// before. It may call it at once. Wake runs under the lock, so it returns at once and calls nothing
// of the runner.
func (m *runner) whenChanged(seen statusDigest, wake func()) (stop func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.statusDigest() != seen {
		wake()
		return func() {}
	}
	waiter := &statusWaiter{seen, wake}
	m.statusWaiters = append(m.statusWaiters, waiter)
	return func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.statusWaiters = slices.DeleteFunc(m.statusWaiters, func(o *statusWaiter) bool { return o == waiter })
	}
}

// wakeStatusWaiters wakes the waiters for a change, if there is one.
func (m *runner) wakeStatusWaiters() {
	if len(m.statusWaiters) == 0 {
		return
	}
	now := m.statusDigest()
	m.statusWaiters = slices.DeleteFunc(m.statusWaiters, func(w *statusWaiter) bool {
		if w.seen == now {
			return false
		}
		w.wake()
		return true
	})
}
