package natskv

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go"
)

// legacyKeyValue is a keyValue over a handle of package nats. A call that takes no context is at
// least not begun after the context's end.
type legacyKeyValue struct{ kv nats.KeyValue }

func (k legacyKeyValue) bucket() string { return k.kv.Bucket() }

func (k legacyKeyValue) get(ctx context.Context, key string) (revision, error) {
	if err := ctx.Err(); err != nil {
		return revision{}, err
	}
	e, err := k.kv.Get(key)
	switch {
	case errors.Is(err, nats.ErrKeyNotFound), errors.Is(err, nats.ErrKeyDeleted):
		return revision{}, fmt.Errorf("%w (%w)", errNoValue, err)
	case err != nil:
		return revision{}, err
	}
	return *k.revision(e), nil
}

func (k legacyKeyValue) update(ctx context.Context, key string, value []byte, last uint64) (uint64, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	sequence, err := k.kv.Update(key, value, last)
	return sequence, conflict(err, isLegacyConflict(err))
}

func isLegacyConflict(err error) bool {
	var api *nats.APIError
	return errors.As(err, &api) && (api.ErrorCode == nats.JSErrCodeStreamWrongLastSequence ||
		api.ErrorCode == nats.JSErrCodeStreamWrongLastSequenceConstant)
}

func (k legacyKeyValue) follow(ctx context.Context, keys string, present bool, see func(*revision)) (<-chan struct{}, error) {
	opts := []nats.WatchOpt{nats.Context(ctx)}
	if !present {
		opts = append(opts, nats.UpdatesOnly())
	}
	w, err := k.kv.Watch(keys, opts...)
	if err != nil {
		return nil, err
	}
	return pump(w.Updates(), func(e nats.KeyValueEntry) {
		if e != nil || !timedOut(w) {
			see(k.revision(e))
		}
	}), nil
}

// timedOut distinguishes two meanings of nil: the present is complete, or the library gave up
// waiting for it.
func timedOut(w nats.KeyWatcher) bool {
	select {
	case err := <-w.Error():
		return err != nil
	default:
		return false
	}
}

func (k legacyKeyValue) revision(e nats.KeyValueEntry) *revision {
	if e == nil {
		return nil
	}
	return &revision{key: e.Key(), value: e.Value(), sequence: e.Revision(), notice: removed(e.Operation() == nats.KeyValueDelete, e.Operation() == nats.KeyValuePurge)}
}

func (k legacyKeyValue) info(ctx context.Context) (streamInfo, error) {
	if err := ctx.Err(); err != nil {
		return streamInfo{}, err
	}
	status, err := k.kv.Status()
	if err != nil {
		return streamInfo{}, err
	}
	described, ok := status.(interface{ StreamInfo() *nats.StreamInfo })
	if !ok {
		return streamInfo{}, errNoInfo
	}
	return convert(described.StreamInfo())
}
