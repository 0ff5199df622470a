package kafkalog

import (
	"context"
	"fmt"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/kafkalog/internal/broker"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// CheckRights returns an error that wraps driver.ErrDenied if the right to write to the topic is
// missing. It asks a broker for this user's rights to the topic, and writes nothing. Brokers before
// Kafka 2.3 do not report them; then it returns nil. It returns the error of CheckKey, and any
// other error if no broker answers.
func (s *Store) CheckRights(ctx context.Context, key string) error {
	if err := admit(ctx, key, nil); err != nil {
		return err
	}
	t, err := s.wire.describe(ctx, true)
	if err == nil && !mayWrite(t.AuthorizedOperations) {
		err = fmt.Errorf("%w: the user may not write to the topic: grant Write on it", driver.ErrDenied)
	}
	if err != nil {
		err = broker.Denied(err)
		return fmt.Errorf("kafkalog: check the right to write to topic %s: %w", s.wire.topic, err)
	}
	return nil
}

// mayWrite reads a set of operations, which has a bit for each. A set without Describe, which was
// needed to get it, cannot be right: the broker does not report rights.
func mayWrite(operations int32) bool {
	const told, write = 1 << kmsg.ACLOperationDescribe, 1 << kmsg.ACLOperationWrite
	return operations < 0 || operations&told == 0 || operations&write != 0
}

var _ driver.RightsChecker = (*Store)(nil)
