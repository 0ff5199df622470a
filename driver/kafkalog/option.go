package kafkalog

import (
	"errors"
	"fmt"
	"time"
)

const (
	// defaultTimeout is how long a broker may take for an answer.
	defaultTimeout = 2 * time.Second
	shortTimeout   = 200 * time.Millisecond
	longTimeout    = time.Minute
)

// Option changes how Open makes a store.
type Option func(*settings)

type settings struct {
	timeout  time.Duration
	replicas int
	create   bool
}

// WithTimeout sets how long a broker may take for an answer before the store gives up its
// connection: 200 ms to 1 min; the default is 2 s. Half of it is for the replicas to store a write.
// A lease should be at least twice as long. Calls still end with their contexts.
func WithTimeout(d time.Duration) Option { return func(s *settings) { s.timeout = d } }

// WithReplicas sets how many brokers keep a topic that Open creates. The default, also for 0, is
// three, or all brokers if there are fewer. With fewer than three, one broker suffices to store a
// write, so its loss may take writes back. A negative number makes Open fail.
func WithReplicas(n int) Option { return func(s *settings) { s.replicas = n } }

// WithoutCreate makes Open fail if the topic does not exist.
func WithoutCreate() Option { return func(s *settings) { s.create = false } }

func settle(opts []Option) (settings, error) {
	s := settings{timeout: defaultTimeout, create: true}
	for _, o := range opts {
		o(&s)
	}
	var bad []error
	if s.timeout < shortTimeout || s.timeout > longTimeout {
		bad = append(bad, fmt.Errorf("a timeout of %v is not between %v and %v", s.timeout, shortTimeout, longTimeout))
	}
	if s.replicas < 0 {
		bad = append(bad, fmt.Errorf("%d replicas: the number must not be negative", s.replicas))
	}
	return s, errors.Join(bad...)
}
