package neli

import (
	"context"
	"fmt"
	"time"

	"github.com/tenure-go/tenure"
)

// MockNeli is a Neli for tests of programs: the test decides when it leads, and it needs no
// brokers. AcquireLeader, RevokeLeader and FenceLeader take effect in the next Pulse, or in a
// waiting one. If several are called before that, the last one counts.
type MockNeli interface {
	Neli
	// PulseError makes the next Pulse return this error.
	PulseError(err error)
	// AcquireLeader makes the mock the leader, with a higher Token than before.
	AcquireLeader()
	// RevokeLeader ends leadership by LeaderRevoked.
	RevokeLeader()
	// FenceLeader ends leadership by LeaderFenced.
	FenceLeader()
}

// MockConfig is the Config of a mock.
type MockConfig struct {
	// MinPollInterval is the interval of Deadline. Default: 100 ms.
	MinPollInterval *time.Duration
}

// SetDefaults fills in the defaults.
func (c *MockConfig) SetDefaults() { orDuration(&c.MinPollInterval, DefaultMinPollInterval) }

// Validate returns an error unless MinPollInterval is at least 1 ms.
func (c MockConfig) Validate() error {
	return atLeast("MinPollInterval", c.MinPollInterval, time.Millisecond)
}

// String shows the settings.
func (c MockConfig) String() string {
	return fmt.Sprintf("MockConfig[MinPollInterval=%s]", show(c.MinPollInterval))
}

// NewMock returns a mock. It returns an error if the config is wrong or there is more than one
// barrier.
func NewMock(config MockConfig, barrier ...Barrier) (MockNeli, error) {
	tell, err := sole(barrier)
	if err != nil {
		return nil, err
	}
	config.SetDefaults()
	if err := config.Validate(); err != nil {
		return nil, fmt.Errorf("neli: %w", err)
	}
	return &mock{
		barrier: tell, deadline: newDeadline(*config.MinPollInterval), closed: make(chan struct{}),
		is: LeaderRevoked{}, wanted: LeaderRevoked{}, changes: changes{changed: make(chan struct{})},
	}, nil
}

// mock is the type that NewMock returns.
type mock struct {
	barrier  Barrier
	deadline *deadline
	closed   chan struct{}

	changes // guards the following
	state   State
	is      Event // the last event given to the barrier; at first LeaderRevoked
	wanted  Event
	calling bool
	ready   bool // the barrier has returned from the last event
	working int
	token   uint64
	err     error
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
	return m.untilClosed(func() bool {
		m.tell()
		return m.ended()
	})
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
