package fenced

import (
	"errors"
	"fmt"
	"time"

	"github.com/tenure-go/tenure/driver"
)

// defaultNeed is some round trips to a near cluster, and little of the shortest lease on Kafka.
const defaultNeed = 100 * time.Millisecond

// Option changes how Open makes a Producer.
type Option func(*settings)

type settings struct {
	id   string
	need time.Duration
}

// WithID sets the transactional.id; the default is the election's name. All candidates of an
// election must use the same one, and no other program may use it. If two elections on one Kafka
// cluster have the same name, give each an ID of its own.
func WithID(id string) Option { return func(s *settings) { s.id = id } }

// WithNeed sets how much of the lease must be left to obtain a producer, to begin a transaction and
// to commit it: 100 ms if not set. With less the call returns tenure.ErrTooLate. A leader that
// renews in time always has three fifths of its lease left.
func WithNeed(d time.Duration) Option { return func(s *settings) { s.need = d } }

func settle(t driver.Term, opts []Option) (settings, error) {
	s := settings{id: t.Election(), need: defaultNeed}
	for _, o := range opts {
		o(&s)
	}
	var bad []error
	if s.id == "" {
		bad = append(bad, errors.New("the transactional id is empty"))
	}
	if s.need < 0 {
		bad = append(bad, fmt.Errorf("the need is %v; it must not be negative", s.need))
	}
	return s, errors.Join(bad...)
}
