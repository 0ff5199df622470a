package neli

import (
	"context"
	"sync"
	"time"

	"github.com/tenure-go/tenure"
)

// mock is the type that NewMock returns.
type mock struct {
	barrier  Barrier
	deadline *deadline
	closed   chan struct{}

	mu      sync.Mutex
	state   State
	is      Event // the last event given to the barrier; at first LeaderRevoked
	wanted  Event
	calling bool
	ready   bool // the barrier has returned from the last event
	working int
	token   uint64
	err     error
	changed chan struct{}
}

func (m *mock) change(do func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	do()
	close(m.changed)
	m.changed = make(chan struct{})
}

func (m *mock) news() <-chan struct{} {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.changed
}

func (m *mock) AcquireLeader() { m.want(LeaderAcquired{}) }
func (m *mock) RevokeLeader()  { m.want(LeaderRevoked{}) }
func (m *mock) FenceLeader()   { m.want(LeaderFenced{}) }

// want has no effect once the mock is closing.
func (m *mock) want(e Event) {
	m.change(func() {
		if m.state == Live {
			m.wanted = e
		}
	})
}

func (m *mock) PulseError(err error) { m.change(func() { m.err = err }) }

func (m *mock) Pulse(timeout time.Duration) (bool, error) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	return m.PulseCtx(ctx)
}

func (m *mock) PulseCtx(ctx context.Context) (bool, error) {
	return await(ctx, m.deadline, m.news, m.look)
}

func (m *mock) look() (bool, error) {
	m.tell()
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.err; err != nil {
		m.err = nil
		return m.leads(), err
	}
	if m.state != Live {
		return false, ErrNonLivePulse
	}
	return m.leads() && m.ready, nil
}

// tell calls the barrier until no event is due.
func (m *mock) tell() {
	for m.tellOne() {
	}
}

func (m *mock) tellOne() bool {
	m.mu.Lock()
	e := m.wanted
	if m.calling || e == m.is || m.working > 0 && e == (LeaderRevoked{}) {
		m.mu.Unlock()
		return false
	}
	m.calling, m.is, m.ready = true, e, false
	if e == (LeaderAcquired{}) {
		m.token++
	}
	m.mu.Unlock()
	defer m.change(func() { m.calling, m.ready = false, true })
	m.barrier(e)
	return true
}

// leads is called under the lock.
func (m *mock) leads() bool { return m.state == Live && m.is == (LeaderAcquired{}) }

func (m *mock) IsLeader() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.leads()
}

// Token is also available while the barrier handles LeaderRevoked, as in a real instance.
func (m *mock) Token() uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.is == (LeaderAcquired{}) || m.calling && m.is == (LeaderRevoked{}) {
		return m.token
	}
	return 0
}

func (m *mock) Term() *tenure.Term { return nil }

func (m *mock) Deadline() Deadline { return m.deadline }

func (m *mock) State() State {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.state
}

func (m *mock) Await() { <-m.closed }

func (m *mock) Background(task LeaderTask) (Pulser, error) {
	if task == nil {
		return nil, errNoTask
	}
	return background(m.PulseCtx, func() { m.during(task) })
}

func (m *mock) during(task LeaderTask) {
	m.mu.Lock()
	begin := m.leads() && m.ready && m.wanted == m.is
	if begin {
		m.working++
	}
	m.mu.Unlock()
	if begin {
		defer m.change(func() { m.working-- })
		task()
	}
}

// Close calls the barrier with LeaderRevoked if the mock leads.
func (m *mock) Close() error {
	m.change(func() {
		if m.state == Live {
			m.state = Closing
		}
		if m.wanted = m.is; m.is == (LeaderAcquired{}) {
			m.wanted = LeaderRevoked{}
		}
	})
	late := time.NewTimer(closeWithin)
	defer late.Stop()
	for {
		changed := m.news()
		m.tell()
		if m.ended() {
			return nil
		}
		select {
		case <-changed:
		case <-late.C:
			return errBusy
		}
	}
}

// ended closes the mock if no event is due, and reports whether it is closed.
func (m *mock) ended() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.state != Closed && !m.calling && m.is == m.wanted {
		m.state = Closed
		close(m.closed)
	}
	return m.state == Closed
}
