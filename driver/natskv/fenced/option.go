package fenced

import "time"

const (
	// defaultNeed is some round trips to a near cluster, and little of the shortest lease on NATS.
	defaultNeed = 100 * time.Millisecond
	// callTimeout bounds a call whose context has no deadline.
	callTimeout = 5 * time.Second
)

// Option changes how Open makes a Publisher.
type Option func(*settings)

type settings struct{ need time.Duration }

// WithNeed sets how much of the lease must be left to take the fence and to send a message: 100 ms
// if not set. With less the call returns tenure.ErrTooLate. A leader that renews in time always has
// three fifths of its lease left.
func WithNeed(d time.Duration) Option { return func(s *settings) { s.need = max(d, 0) } }

func settle(opts []Option) settings {
	s := settings{need: defaultNeed}
	for _, o := range opts {
		o(&s)
	}
	return s
}
