package etcdkv

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/metadata"
)

const (
	// After quiet without a message, which is longer than leaders with a lease of 15 s are silent,
	// the store asks the server for one. It must come within answerWithin.
	quiet        = 5 * time.Second
	answerWithin = 3 * time.Second
)

// errCompacted reports that events at the beginning of a stream are not available any more.
var errCompacted = errors.New("the next event is compacted")

// errOtherCluster reports that a stream is not of the cluster whose history it should continue.
var errOtherCluster = errors.New("the watch reached another cluster than the read before it: " +
	"check that all endpoints are members of one cluster (etcdctl member list)")

// stream is one stream of events of all keys below the prefix.
type stream struct {
	rpc    pb.Watch_WatchClient
	cancel context.CancelFunc

	mu     sync.Mutex // is held while the watchdog sends
	ended  bool
	asked  bool // the last message is a question
	kicked *time.Timer
}

// newStream opens a stream with the events from a revision on. It returns an error if the stream is
// of another cluster than the point. The stream ends with the context.
func (s *Store) newStream(ctx context.Context, at point, from int64) (*stream, error) {
	own, cancel := context.WithCancel(metadata.AppendToOutgoingContext(
		ctx, rpctypes.MetadataRequireLeaderKey, rpctypes.MetadataHasLeader))
	w := &stream{cancel: cancel}
	var err error
	for range s.client.Endpoints() {
		if err = w.begin(own, s, at, from); !byLearner(err) {
			break
		}
	}
	if err != nil {
		cancel()
		return nil, s.explain(ctx, err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.kicked = time.AfterFunc(quiet, w.ask)
	return w, nil
}

func (w *stream) begin(own context.Context, s *Store, at point, from int64) (err error) {
	if w.rpc, err = pb.NewWatchClient(s.client.ActiveConnection()).Watch(own); err != nil {
		return err
	}
	create := &pb.WatchCreateRequest{Key: []byte(s.prefix), RangeEnd: end(s.prefix), StartRevision: from, ProgressNotify: true}
	request := &pb.WatchRequest{RequestUnion: &pb.WatchRequest_CreateRequest{CreateRequest: create}}
	if err = w.rpc.Send(request); err != nil {
		_, err = w.rpc.Recv() // it has the reason
		return err
	}
	created, err := w.rpc.Recv()
	switch {
	case err != nil:
		return err
	case created.Header.GetClusterId() != at.cluster:
		return errOtherCluster
	}
	return refusal(created)
}

// refusal returns the error in a message that ends a watch.
func refusal(m *pb.WatchResponse) error {
	switch {
	case m.CompactRevision > 0:
		return errCompacted
	case m.Canceled:
		return fmt.Errorf("the server ends the watch: %s", m.CancelReason)
	}
	return nil
}

// receive returns the next events and the raft term of the server, or an error when the stream is
// lost.
func (w *stream) receive() ([]*mvccpb.Event, uint64, error) {
	m, err := w.rpc.Recv()
	if err != nil {
		return nil, 0, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asked = false
	if !w.ended {
		w.kicked.Reset(quiet)
	}
	return m.Events, m.Header.GetRaftTerm(), refusal(m)
}

// ask asks a silent server for a message, and gives the stream up if none comes. Its answer counts
// for nothing else: servers may send it before events that precede it.
func (w *stream) ask() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ended {
		return
	}
	if w.asked {
		w.cancel()
		return
	}
	w.asked = true
	w.kicked.Reset(answerWithin)
	// An error also shows at Recv.
	_ = w.rpc.Send(&pb.WatchRequest{RequestUnion: &pb.WatchRequest_ProgressRequest{ProgressRequest: &pb.WatchProgressRequest{}}})
}

// close ends the stream.
func (w *stream) close() {
	w.cancel()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ended = true
	w.kicked.Stop()
}
