package etcdkv

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"slices"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/watches"
)

// Store is the elections below one prefix of etcd's keys. It must be made by Open. Its methods may
// be called from many goroutines. Close it after its last use.
type Store struct {
	client *clientv3.Client
	kv     pb.KVClient
	tls    *tls.Config // nil: none
	prefix string
	past   history
	hub    *watches.Hub
}

var (
	_ driver.Store     = (*Store)(nil)
	_ driver.Watcher   = (*Store)(nil)
	_ driver.Bounded   = (*Store)(nil)
	_ driver.Inspector = (*Store)(nil)
)

// Close ends all watches and the connections. It may be called more than once, but not from a
// function that was given to Watch.
func (s *Store) Close() error {
	s.hub.Close()
	if err := s.client.Close(); err != nil && !errors.Is(err, context.Canceled) {
		return fmt.Errorf("etcdkv: close: %w", err)
	}
	return nil
}

// Read returns the state of the cell by a linearizable read. The caller may keep the value.
//
// It returns an error that wraps driver.ErrDenied if a right or valid credentials are missing, the
// error of CheckKey, and any other error if the state is not known.
func (s *Store) Read(ctx context.Context, key string) (driver.Entry, error) {
	e, err := s.read(ctx, key)
	if err != nil {
		return driver.Entry{}, fmt.Errorf("etcdkv: read %s: %w", s.place(key), err)
	}
	return e, nil
}

func (s *Store) read(ctx context.Context, key string) (driver.Entry, error) {
	if err := s.ready(ctx, key); err != nil {
		return driver.Entry{}, err
	}
	kvs, at, err := s.get(ctx, &pb.RangeRequest{Key: []byte(s.prefix + key)})
	if err != nil {
		return driver.Entry{}, err
	}
	e := driver.Entry{Floor: uint64(at.revision), Era: at.era()}
	if len(kvs.Kvs) > 0 {
		e.Value, e.Version, e.Unproven = entryOf(kvs.Kvs[0].Value, kvs.Kvs[0].ModRevision, at)
	}
	return e, nil
}

// entryOf returns the parts of an entry that follow from the bytes in etcd, and from the point of
// the answer that showed them.
func entryOf(raw []byte, revision int64, at point) (value []byte, v driver.Version, unproven bool) {
	value, mark, ok := unseal(raw)
	return value, version{at.era(), revision, string(raw)}.encode(), !ok || !mark.proves(at)
}

// get sends one linearizable read. It returns the answer, and the point that it shows.
func (s *Store) get(ctx context.Context, r *pb.RangeRequest) (*pb.RangeResponse, point, error) {
	sent := s.past.now()
	answer, err := again(ctx, s, s.kv.Range, r)
	if err != nil {
		return nil, point{}, s.explain(ctx, err)
	}
	now, _, err := s.past.hear(sent, answer.Header)
	at := pointOf(answer.Header)
	at.changes = now.changes
	return answer, at, err
}

// look asks for the present point of the history.
func (s *Store) look(ctx context.Context) (point, error) {
	_, at, err := s.get(ctx, &pb.RangeRequest{Key: []byte(s.prefix), KeysOnly: true})
	return at, err
}

// CompareAndSwap replaces the state of the cell with value if its version is still prev, and
// returns the version of the new state. The caller may reuse the value. A version that was read in
// another era is a conflict.
//
// It returns an error that wraps driver.ErrConflict if the version was different, one that wraps
// driver.ErrDenied if a right or valid credentials are missing, and the error of CheckKey when
// nothing was sent. Any other error leaves open whether the value was or will be written.
func (s *Store) CompareAndSwap(ctx context.Context, key string, prev driver.Version, value []byte) (driver.Version, error) {
	v, err := s.swap(ctx, key, prev, value)
	if err != nil {
		return "", fmt.Errorf("etcdkv: compare and swap %s: %w", s.place(key), err)
	}
	return v, nil
}

func (s *Store) swap(ctx context.Context, key string, prev driver.Version, value []byte) (driver.Version, error) {
	if err := s.ready(ctx, key); err != nil {
		return "", err
	}
	sent := s.past.now()
	if !sent.known() { // the stamp needs it
		var err error
		if sent, err = s.look(ctx); err != nil {
			return "", err
		}
	}
	name, raw := []byte(s.prefix+key), sent.stamp().seal(value)
	guards, err := compares(name, prev, sent)
	if err != nil {
		return "", err
	}
	put := &pb.RequestOp{Request: &pb.RequestOp_RequestPut{RequestPut: &pb.PutRequest{Key: name, Value: raw}}}
	answer, err := again(ctx, s, s.kv.Txn, &pb.TxnRequest{Compare: guards, Success: []*pb.RequestOp{put}})
	if err != nil {
		return "", s.explain(ctx, err)
	}
	_, same, err := s.past.hear(sent, answer.Header)
	switch {
	case !answer.Succeeded:
		return "", driver.ErrConflict
	case err != nil:
		return "", err
	case !same:
		return "", errMoved
	}
	return version{sent.era(), answer.Header.Revision, string(raw)}.encode(), nil
}

// compares returns the conditions under which a key has a version. It returns a conflict if the
// version is of another history than the latest one, or of no history at all.
func compares(name []byte, prev driver.Version, latest point) ([]*pb.Compare, error) {
	if prev == "" {
		return []*pb.Compare{at(name, 0)}, nil
	}
	v, ok := parseVersion(prev)
	if !ok || v.era != latest.era() {
		return nil, driver.ErrConflict
	}
	// After a snapshot was restored, the revision alone may be that of another value.
	bytes := &pb.Compare{
		Key: name, Target: pb.Compare_VALUE, Result: pb.Compare_EQUAL, TargetUnion: &pb.Compare_Value{Value: []byte(v.raw)},
	}
	return []*pb.Compare{at(name, v.revision), bytes}, nil
}

// at is the condition that the last write of a key has this revision; 0: the key is absent.
func at(name []byte, revision int64) *pb.Compare {
	return &pb.Compare{
		Key: name, Target: pb.Compare_MOD, Result: pb.Compare_EQUAL, TargetUnion: &pb.Compare_ModRevision{ModRevision: revision},
	}
}

// Watch calls see for every later change of the cell, in order, until stop is called. It does not
// call it for the present state. All watches of a Store share one stream.
//
// The context bounds only the set-up. If its deadline comes before the stream is open, the watch
// begins without pushes, and says so by an entry with Lost. Errors are as for Read. After Close,
// Watch returns an error.
func (s *Store) Watch(ctx context.Context, key string, see func(driver.Entry)) (stop func(), err error) {
	err = s.ready(ctx, key)
	if err == nil {
		stop, err = s.hub.Watch(ctx, key, see)
	}
	if err != nil {
		return nil, fmt.Errorf("etcdkv: watch %s: %w", s.place(key), err)
	}
	return stop, nil
}

// ready refuses requests that must not be sent.
func (s *Store) ready(ctx context.Context, key string) error {
	return cmp.Or(s.CheckKey(key), context.Cause(ctx))
}

// place formats a key for a message.
func (s *Store) place(key string) string { return fmt.Sprintf("%.300q", s.prefix+key) }

// MinLease returns 1 s: a cluster needs a second or two to replace its leader, and a stalled disk
// delays writes for longer.
func (s *Store) MinLease() time.Duration { return time.Second }

// MaxLease returns 1 h, as for any store without a limit of its own.
func (s *Store) MaxLease() time.Duration { return driver.MaxLease }

// maxKey is the longest key in bytes.
const maxKey = 512

// CheckKey returns an error unless the key is UTF-8 text of 1 to 512 bytes without control
// characters.
func (s *Store) CheckKey(key string) error { return driver.CheckText(key, maxKey) }

// Keys returns the sorted names of all keys below the prefix, without the prefix, by one request
// that any member answers from its own copy. It leaves out names that CheckKey refuses. Errors are
// as for Read.
func (s *Store) Keys(ctx context.Context) ([]string, error) {
	answer, err := again(ctx, s, s.kv.Range, &pb.RangeRequest{
		Key: []byte(s.prefix), RangeEnd: end(s.prefix), KeysOnly: true, Serializable: true,
	})
	if err != nil {
		return nil, fmt.Errorf("etcdkv: list the keys below %q: %w", s.prefix, s.explain(ctx, err))
	}
	var all []string
	for _, kv := range answer.Kvs {
		if key := string(bytes.TrimPrefix(kv.Key, []byte(s.prefix))); s.CheckKey(key) == nil {
			all = append(all, key)
		}
	}
	slices.Sort(all)
	return all, nil
}

// end returns the end of the range of all keys below a prefix.
func end(prefix string) []byte { return []byte(clientv3.GetPrefixRangeEnd(prefix)) }

// CheckRights returns an error that wraps driver.ErrDenied if the right to read or write the key is
// missing, and any other error if there was no answer or the cluster accepts no writes. It sends a
// transaction whose condition no key meets.
func (s *Store) CheckRights(ctx context.Context, key string) error {
	err := s.ready(ctx, key)
	if err == nil {
		name := []byte(s.prefix + key)
		put := &pb.RequestOp{Request: &pb.RequestOp_RequestPut{RequestPut: &pb.PutRequest{Key: name}}}
		_, err = again(ctx, s, s.kv.Txn, &pb.TxnRequest{Compare: []*pb.Compare{at(name, -1)}, Success: []*pb.RequestOp{put}})
		err = s.explain(ctx, err)
	}
	if err != nil {
		return fmt.Errorf("etcdkv: check the right to write %s: %w", s.place(key), err)
	}
	return nil
}
