package natskv

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"
)

// jetstreamKeyValue is a keyValue over a handle of package jetstream.
type jetstreamKeyValue struct{ kv jetstream.KeyValue }

func (k jetstreamKeyValue) bucket() string { return k.kv.Bucket() }

func (k jetstreamKeyValue) get(ctx context.Context, key string) (revision, error) {
	e, err := k.kv.Get(ctx, key)
	switch {
	case errors.Is(err, jetstream.ErrKeyNotFound), errors.Is(err, jetstream.ErrKeyDeleted):
		return revision{}, fmt.Errorf("%w (%w)", errNoValue, err)
	case err != nil:
		return revision{}, err
	}
	return *k.revision(e), nil
}

func (k jetstreamKeyValue) update(ctx context.Context, key string, value []byte, last uint64) (uint64, error) {
	sequence, err := k.kv.Update(ctx, key, value, last)
	return sequence, conflict(err, isConflict(err))
}

func (k jetstreamKeyValue) follow(ctx context.Context, keys string, present bool, see func(*revision)) (<-chan struct{}, error) {
	var opts []jetstream.WatchOpt
	if !present {
		opts = append(opts, jetstream.UpdatesOnly())
	}
	w, err := k.kv.Watch(ctx, keys, opts...)
	if err != nil {
		return nil, err
	}
	return pump(w.Updates(), func(e jetstream.KeyValueEntry) { see(k.revision(e)) }), nil
}

func (k jetstreamKeyValue) revision(e jetstream.KeyValueEntry) *revision {
	if e == nil {
		return nil
	}
	return &revision{key: e.Key(), value: e.Value(), sequence: e.Revision(), notice: removed(e.Operation() == jetstream.KeyValueDelete, e.Operation() == jetstream.KeyValuePurge)}
}

func (k jetstreamKeyValue) info(ctx context.Context) (streamInfo, error) {
	status, err := k.kv.Status(ctx)
	if err != nil {
		return streamInfo{}, err
	}
	described, ok := status.(interface{ StreamInfo() *jetstream.StreamInfo })
	if !ok {
		return streamInfo{}, errNoInfo
	}
	return convert(described.StreamInfo())
}
