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

// requestFailed returns the error of a call whose own request failed. Unless the caller gave up,
// the partition may have another leader now, so the follower of the log looks for it.
func (s *Store) requestFailed(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	err = broker.Denied(err)
	if !errors.Is(err, driver.ErrDenied) {
		s.kick()
	}
	return err
}
