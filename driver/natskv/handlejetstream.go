package natskv

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"
)

// modern is a handle of package jetstream.
type modern struct{ kv jetstream.KeyValue }

func (m modern) bucket() string { return m.kv.Bucket() }

func (m modern) get(ctx context.Context, key string) (revision, error) {
	e, err := m.kv.Get(ctx, key)
	switch {
	case errors.Is(err, jetstream.ErrKeyNotFound), errors.Is(err, jetstream.ErrKeyDeleted):
		return revision{}, fmt.Errorf("%w (%w)", errNoValue, err)
	case err != nil:
		return revision{}, err
	}
	return *m.revision(e), nil
}

func (m modern) update(ctx context.Context, key string, value []byte, last uint64) (uint64, error) {
	sequence, err := m.kv.Update(ctx, key, value, last)
	return sequence, conflict(err, isConflict(err))
}

func (m modern) follow(ctx context.Context, keys string, present bool, see func(*revision)) (<-chan struct{}, error) {
	var opts []jetstream.WatchOpt
	if !present {
		opts = append(opts, jetstream.UpdatesOnly())
	}
	w, err := m.kv.Watch(ctx, keys, opts...)
	if err != nil {
		return nil, err
	}
	return pump(w.Updates(), func(e jetstream.KeyValueEntry) { see(m.revision(e)) }), nil
}

func (m modern) revision(e jetstream.KeyValueEntry) *revision {
	if e == nil {
		return nil
	}
	return &revision{key: e.Key(), value: e.Value(), sequence: e.Revision(), notice: removed(e.Operation() == jetstream.KeyValueDelete, e.Operation() == jetstream.KeyValuePurge)}
}

func (m modern) info(ctx context.Context) (streamInfo, error) {
	status, err := m.kv.Status(ctx)
	if err != nil {
		return streamInfo{}, err
	}
	described, ok := status.(interface{ StreamInfo() *jetstream.StreamInfo })
	if !ok {
		return streamInfo{}, errNoInfo
	}
	return convert(described.StreamInfo())
}
