package kafkalog

import (
	"context"
	"errors"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/kafkalog/internal/broker"
	"github.com/twmb/franz-go/pkg/kerr"
)

// endings are the answers after which reading cannot continue from the present state.
var endings = []error{kerr.OffsetOutOfRange, errDiverged}

// mishap turns the error of a caller's own request into its result. Unless the caller gave up, the
// leader may be another by now, and the follower of the log looks for it.
func (s *Store) mishap(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	err = broker.Denied(err)
	if !errors.Is(err, driver.ErrDenied) {
		s.kick()
	}
	return err
}
