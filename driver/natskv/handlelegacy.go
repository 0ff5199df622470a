package natskv

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go"
)

// legacy is a handle of package nats. A call that knows no context is at least not begun after its end.
type legacy struct{ kv nats.KeyValue }

func (l legacy) bucket() string { return l.kv.Bucket() }

func (l legacy) get(ctx context.Context, key string) (revision, error) {
	if err := ctx.Err(); err != nil {
		return revision{}, err
	}
	e, err := l.kv.Get(key)
	switch {
	case errors.Is(err, nats.ErrKeyNotFound), errors.Is(err, nats.ErrKeyDeleted):
		return revision{}, fmt.Errorf("%w (%w)", errNoValue, err)
	case err != nil:
		return revision{}, err
	}
	return *l.revision(e), nil
}

func (l legacy) update(ctx context.Context, key string, value []byte, last uint64) (uint64, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	sequence, err := l.kv.Update(key, value, last)
	return sequence, conflict(err, isLegacyConflict(err))
}

func isLegacyConflict(err error) bool {
	var api *nats.APIError
	return errors.As(err, &api) && (api.ErrorCode == nats.JSErrCodeStreamWrongLastSequence ||
		api.ErrorCode == nats.JSErrCodeStreamWrongLastSequenceConstant)
}

func (l legacy) follow(ctx context.Context, keys string, present bool, see func(*revision)) (<-chan struct{}, error) {
	opts := []nats.WatchOpt{nats.Context(ctx)}
	if !present {
		opts = append(opts, nats.UpdatesOnly())
	}
	w, err := l.kv.Watch(keys, opts...)
	if err != nil {
		return nil, err
	}
	return pump(w.Updates(), func(e nats.KeyValueEntry) {
		if e != nil || !timedOut(w) {
			see(l.revision(e))
		}
	}), nil
}

// timedOut tells a nil that says that the present is complete from one that says that the library gave up waiting for it.
func timedOut(w nats.KeyWatcher) bool {
	select {
	case err := <-w.Error():
		return err != nil
	default:
		return false
	}
}

func (l legacy) revision(e nats.KeyValueEntry) *revision {
	if e == nil {
		return nil
	}
	return &revision{key: e.Key(), value: e.Value(), sequence: e.Revision(), notice: removed(e.Operation() == nats.KeyValueDelete, e.Operation() == nats.KeyValuePurge)}
}

func (l legacy) info(ctx context.Context) (streamInfo, error) {
	if err := ctx.Err(); err != nil {
		return streamInfo{}, err
	}
	status, err := l.kv.Status()
	if err != nil {
		return streamInfo{}, err
	}
	described, ok := status.(interface{ StreamInfo() *nats.StreamInfo })
	if !ok {
		return streamInfo{}, errNoInfo
	}
	return convert(described.StreamInfo())
}
