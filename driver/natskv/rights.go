package natskv

import (
	"context"
	"fmt"
	"strconv"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/tenure-go/tenure/driver/abandon"
	"github.com/tenure-go/tenure/driver/natskv/internal/connection"
)

// unreachable is a sequence that no stream reaches: a million messages a second would take 146,000
// years.
const unreachable uint64 = 1 << 62

// CheckRights returns an error that wraps driver.ErrDenied if the right to write the key is
// missing. It publishes a delete marker under the condition that the last sequence of the key is
// one that no stream reaches. The server checks that condition first, so it stores nothing, with
// any setting of the bucket. CheckRights returns the error of CheckKey, and any other error if no
// answer came. Over a handle, where a missing right looks like silence, it does nothing and returns
// nil.
func (s *Store) CheckRights(ctx context.Context, key string) error {
	b, ok := s.cells.(rightsChecker)
	if !ok {
		return nil
	}
	if err := checkKey(key); err != nil {
		return err
	}
	_, err := abandon.Run(ctx, s.calls, func() (struct{}, error) {
		return struct{}{}, b.checkRights(ctx, key)
	}, abandon.NoUndo)
	if err != nil {
		return fmt.Errorf("natskv: check the right to write %s in bucket %s: %w", key, s.cells.bucket(), err)
	}
	return nil
}

// rightsChecker is implemented by cells that can detect a missing right.
type rightsChecker interface {
	checkRights(ctx context.Context, key string) error
}

func (b *bucket) checkRights(ctx context.Context, key string) error {
	_, err := b.request(ctx, &nats.Msg{Subject: b.sendTo + key, Header: nats.Header{
		jetstream.ExpectedStreamHeader:      {b.stream},
		jetstream.ExpectedLastSubjSeqHeader: {strconv.FormatUint(unreachable, 10)},
		"KV-Operation":                      {"DEL"},
	}}, connection.Write)
	return err // an answer refuses the write, and shows the right
}
