package neli

import (
	"fmt"
	"time"
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
		is: LeaderRevoked{}, wanted: LeaderRevoked{}, changed: make(chan struct{}),
	}, nil
}
