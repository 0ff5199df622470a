package natskv

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/tenure-go/tenure/driver"
)

// FromKeyValue returns the elections in a bucket of which the program has only this handle. Prefer
// Open if you have the choice. Over a handle:
//
//   - reads may be Direct Gets, answered by any replica: a stale one costs a refused write and
//     another read, never safety;
//   - reading a deleted or absent key also takes a watch, since a handle does not show delete
//     markers otherwise;
//   - the store notices a recreated bucket only when it reads it;
//   - the store does not recognize an empty bucket, so the very first election waits out one lease;
//   - if nobody responds to a write, the client library sends it again up to twice, 250 ms apart,
//     and has no option against that;
//   - a missing right looks like silence: errors never wrap driver.ErrDenied, and calls end with
//     their context;
//   - while the connection is down, the client library keeps what is written and sends it later,
//     and a call whose connection is lost waits for its context; changes in that time are not
//     pushed afterwards;
//   - the rights are those that the client library needs, which are more than this package's.
//
// If the program has wrapped the client library's handle in its own type, that handle possibly
// cannot describe the stream. Then Inspect returns an error, and entries of absent keys have no
// floor.
//
// Of the options only Translating has an effect here.
func FromKeyValue(kv jetstream.KeyValue, opts ...Option) *Store {
	return newStore(settle(opts).overHandle(&handle{kv: jetstreamKeyValue{kv}}))
}

// FromLegacyKeyValue is FromKeyValue for a handle of the older JetStream API. Its calls take no
// context. So when the context of a call ends, the store gives the call up, but the call goes on in
// the background, at most for the JetStream context's MaxWait (default 5 s) and two pauses of 250
// ms.
func FromLegacyKeyValue(kv nats.KeyValue, opts ...Option) *Store {
	return newStore(settle(opts).overHandle(&handle{kv: legacyKeyValue{kv}}))
}

// keyValue is the common interface of both client APIs.
type keyValue interface {
	bucket() string
	// get returns the last revision of a key, or an error that wraps errNoValue if there is none or
	// it is a marker.
	get(ctx context.Context, key string) (revision, error)
	// update writes if the last message of the key, marker or not, has the sequence last. With 0,
	// it writes if there is no message.
	update(ctx context.Context, key string, value []byte, last uint64) (uint64, error)
	// follow calls see for the last revision of each key, delete markers included, then with nil,
	// then for later writes; without present, only for these. It goes on until the context has
	// ended or the library gives up, and closes over then. The context also bounds the set-up.
	follow(ctx context.Context, keys string, present bool, see func(*revision)) (over <-chan struct{}, err error)
	// keys returns the keys with a value; if ctx has ended some may be missing.
	keys(ctx context.Context) ([]string, error)
	// info describes the stream, or returns an error that wraps errNoInfo if the handle cannot.
	info(ctx context.Context) (streamInfo, error)
}

// revision is one message of a bucket.
type revision struct {
	key      string
	value    []byte
	sequence uint64
	notice   error // why it is a marker; nil if it is none
}

func (r revision) entry(l life) driver.Entry { return l.entry(r.sequence, r.value) }

var (
	errNoValue = errors.New("the key has no value")
	errNoInfo  = errors.New("the handle does not describe its stream")
)

// handle accesses a bucket over a client API's interface for it.
type handle struct {
	kv keyValue
	// known is the life of the bucket that was seen last: a push does not show to which life it
	// belongs.
	known atomic.Uint64
	ttl   ttl
}

func (h *handle) bucket() string { return h.kv.bucket() }

func (h *handle) Read(ctx context.Context, key string) (driver.Entry, error) {
	r, err := h.kv.get(ctx, key)
	found := &r
	if errors.Is(err, errNoValue) {
		found, err = h.present(ctx, key)
	}
	if err != nil {
		return driver.Entry{}, err
	}
	info, err := h.look(ctx)
	switch {
	case err != nil:
		return driver.Entry{}, err
	case found == nil:
		e := info.life().entry(info.State.LastSeq, nil)
		e.Version, e.Notice = "", info.loss()
		return e, nil
	}
	e := found.entry(info.life())
	e.Notice = found.notice
	return e, nil
}

// look describes the stream. Where the handle does not, nothing is vouched for.
func (h *handle) look(ctx context.Context) (streamInfo, error) {
	info, err := h.kv.info(ctx)
	if errors.Is(err, errNoInfo) {
		return streamInfo{}, nil
	}
	if err == nil {
		h.known.Store(uint64(info.life()))
		h.ttl.learn(info)
	}
	return info, err
}

// present returns the last revision of the key, nil if there is none. A watch is the only call that
// shows markers.
func (h *handle) present(ctx context.Context, key string) (*revision, error) {
	following, cancel := context.WithCancel(ctx)
	defer cancel()
	first := make(chan *revision, 1)
	over, err := h.kv.follow(following, key, true, func(r *revision) {
		select {
		case first <- r:
		default: // only the first matters
		}
	})
	if err != nil {
		return nil, err
	}
	select {
	case r := <-first:
		return r, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-over:
		return nil, errors.New("the watch for a delete marker broke off")
	}
}

// CompareAndSwap uses the client's Update even for an absent key. Its Create would also overwrite a
// delete marker that it finds on the way, which is another version than the caller's.
func (h *handle) CompareAndSwap(ctx context.Context, key string, prev driver.Version, value []byte) (driver.Version, error) {
	last, err := sequenceOf(prev)
	if err != nil {
		return "", err
	}
	sequence, err := h.kv.update(ctx, key, value, last)
	if err != nil {
		return "", err
	}
	return versionOf(sequence), nil
}

func (h *handle) survey(ctx context.Context) (survey, error) {
	info, err := h.kv.info(ctx)
	if err == nil {
		h.ttl.learn(info)
	}
	return survey{bucket: h.kv.bucket(), info: info}, err
}

// open follows all keys from now on. The library replaces its consumer by itself; the link is lost
// if the library gives up.
func (h *handle) open(ctx context.Context, _ uint64, deliver func(string, driver.Entry)) (*link, error) {
	if _, err := h.look(ctx); err != nil {
		return nil, err
	}
	following, cancel := context.WithCancel(context.WithoutCancel(ctx))
	detach := context.AfterFunc(ctx, cancel)
	over, err := h.kv.follow(following, ">", false, func(r *revision) {
		if r != nil && following.Err() == nil {
			e := r.entry(life(h.known.Load()))
			e.Era = 0 // the message may be of another life
			deliver(r.key, e)
		}
	})
	if !detach() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		cancel()
		return nil, err
	}
	return &link{lost: over, stop: cancel}, nil
}

// reconnects never signals, since a handle hides its connection.
func (h *handle) reconnects() (<-chan nats.Status, func()) { return nil, func() {} }

// pump calls see for all values, to the end: the library's own goroutine blocks while a value is
// not taken.
func pump[E any](from <-chan E, see func(E)) (over <-chan struct{}) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		for e := range from {
			see(e)
		}
	}()
	return done
}

// conflict marks the clients' error for a revision that is not the last.
func conflict(err error, is bool) error {
	if is {
		return fmt.Errorf("%w (%w)", driver.ErrConflict, err)
	}
	return err
}

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
