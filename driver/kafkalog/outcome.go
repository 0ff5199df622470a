package kafkalog

import (
	"context"
	"errors"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/kafkalog/internal/broker"
	"github.com/twmb/franz-go/pkg/kerr"
)

// endings are the answers after which what was read cannot be gone on from.
var endings = []error{kerr.OffsetOutOfRange, errDiverged}

// mishap is an error of a caller's own request. Unless it is the caller who gave up, the leader may be another by now, and
// the follower of the log is to look for it.
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
