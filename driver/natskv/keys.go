package natskv

import (
	"context"
	"fmt"
	"slices"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/abandon"
)

var _ driver.Lister = (*Store)(nil)

// Keys returns the sorted keys of all values in the bucket. The client library makes a consumer for
// it, which gets the headers of the last message of each key. A missing right looks like silence
// until the context ends: the error never wraps driver.ErrDenied.
func (s *Store) Keys(ctx context.Context) ([]string, error) {
	all, err := abandon.Run(ctx, s.calls, func() ([]string, error) { return s.cells.keys(ctx) }, abandon.NoUndo)
	if err == nil {
		err = context.Cause(ctx) // the library ends a list that is not complete without an error
	}
	if err != nil {
		return nil, fmt.Errorf("natskv: list the keys in bucket %s: %w", s.cells.bucket(), gone(err, s.cells.bucket()))
	}
	all = slices.DeleteFunc(all, func(key string) bool { return checkKey(key) != nil })
	slices.Sort(all)
	return all, nil
}

func (b *bucket) keys(ctx context.Context) ([]string, error) {
	kv, err := b.conn.JetStream().KeyValue(ctx, b.name)
	if err != nil {
		return nil, err
	}
	return jetstreamKeyValue{kv}.keys(ctx)
}

func (h *handle) keys(ctx context.Context) ([]string, error) { return h.kv.keys(ctx) }

func (k jetstreamKeyValue) keys(ctx context.Context) ([]string, error) {
	list, err := k.kv.ListKeys(ctx, jetstream.IgnoreDeletes())
	if err != nil {
		return nil, err
	}
	defer func() { _ = list.Stop() }()
	return receiveAll(ctx, list.Keys()), nil
}

func (k legacyKeyValue) keys(ctx context.Context) ([]string, error) {
	list, err := k.kv.ListKeys(nats.Context(ctx))
	if err != nil {
		return nil, err
	}
	defer func() { _ = list.Stop() }()
	return receiveAll(ctx, list.Keys()), nil
}

// receiveAll returns what came until the channel was closed, or ctx ended.
func receiveAll(ctx context.Context, from <-chan string) (all []string) {
	for {
		select {
		case key, ok := <-from:
			if !ok {
				return all
			}
			all = append(all, key)
		case <-ctx.Done():
			return all
		}
	}
}
