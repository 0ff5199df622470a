package etcdkv

import (
	"cmp"
	"context"
	"errors"
	"net"
	"sync"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"

	"github.com/tenure-go/tenure/driver"
)

// member stands in for a member of a cluster. The test sets the header of its answers and the
// events that it pushes.
type member struct {
	pb.UnimplementedKVServer
	pb.UnimplementedWatchServer
	mu     sync.Mutex
	header *pb.ResponseHeader
	stray  *pb.ResponseHeader // that of new streams, if it is set
	events chan int64         // revisions to push
	begins chan int64
	drop   chan struct{} // ends a stream
}

func (m *member) now() *pb.ResponseHeader {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.header
}

func (m *member) becomes(h *pb.ResponseHeader) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.header = h
}

func (m *member) strays(h *pb.ResponseHeader) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.stray = h
}

// ofStream returns the header of the first message of a stream.
func (m *member) ofStream() *pb.ResponseHeader {
	m.mu.Lock()
	defer m.mu.Unlock()
	return cmp.Or(m.stray, m.header)
}

// start serves a member and opens a store on it.
func start(t *testing.T, h *pb.ResponseHeader) (*member, *Store) {
	t.Helper()
	m := &member{header: h, events: make(chan int64), begins: make(chan int64, 1000), drop: make(chan struct{})}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	pb.RegisterKVServer(server, m)
	pb.RegisterWatchServer(server, m)
	go func() { _ = server.Serve(l) }()
	t.Cleanup(server.Stop)
	s, err := Open(clientv3.Config{Endpoints: []string{l.Addr().String()}}, "/e/")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return m, s
}

func (m *member) Range(context.Context, *pb.RangeRequest) (*pb.RangeResponse, error) {
	return &pb.RangeResponse{Header: m.now()}, nil
}

func (m *member) Watch(w pb.Watch_WatchServer) error {
	create, err := w.Recv()
	if err != nil {
		return err
	}
	m.begins <- create.GetCreateRequest().StartRevision
	_ = w.Send(&pb.WatchResponse{Header: m.ofStream(), Created: true})
	for {
		select {
		case at := <-m.events:
			e := &mvccpb.Event{Type: mvccpb.Event_PUT, Kv: &mvccpb.KeyValue{Key: []byte("/e/billing"), Value: []byte("x"), ModRevision: at}}
			_ = w.Send(&pb.WatchResponse{Header: m.now(), Events: []*mvccpb.Event{e}})
		case <-m.drop:
			return nil
		case <-w.Context().Done():
			return w.Context().Err()
		}
	}
}

// TestRestoreBehindPushes: a follower has sent nothing since its first read, and knows the later
// writes by pushes alone. The restored cluster lacks the last of them, but not that read.
func TestRestoreBehindPushes(t *testing.T) {
	for _, c := range []struct {
		name            string
		before, after   *pb.ResponseHeader
		event, resumeAt int64
	}{
		{"a lower revision", &pb.ResponseHeader{ClusterId: 7, Revision: 1000, RaftTerm: 2}, &pb.ResponseHeader{ClusterId: 7, Revision: 900, RaftTerm: 2}, 1000, 901},
		{"a lower raft term", &pb.ResponseHeader{ClusterId: 7, Revision: 1000, RaftTerm: 5}, &pb.ResponseHeader{ClusterId: 7, Revision: 2000, RaftTerm: 2}, 1000, 2001},
	} {
		t.Run(c.name, func(t *testing.T) {
			m, s := start(t, &pb.ResponseHeader{ClusterId: 7, Revision: 100, RaftTerm: 2})
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			first, err := s.Read(ctx, "billing")
			if err != nil {
				t.Fatal(err)
			}
			pushes := make(chan driver.Entry, 9)
			stop, err := s.Watch(ctx, "billing", func(e driver.Entry) { pushes <- e })
			if err != nil {
				t.Fatal(err)
			}
			defer stop()
			<-m.begins
			m.becomes(c.before)
			m.events <- c.event
			<-pushes
			m.becomes(c.after)
			m.drop <- struct{}{}
			select {
			case at := <-m.begins:
				if at != c.resumeAt {
					t.Errorf("the watch resumes at revision %d, want %d: it would be silent until then", at, c.resumeAt)
				}
			case <-ctx.Done():
				t.Fatal("no new stream")
			}
			if later, err := s.Read(ctx, "billing"); err != nil || later.Era == first.Era {
				t.Errorf("after the restore: era %d, and %d before: %v", later.Era, first.Era, err)
			}
		})
	}
}

// TestWatchOfAnotherCluster: the endpoints are of two clusters, or the address of one now leads to
// another. The stream would be silent, or push revisions of another history.
func TestWatchOfAnotherCluster(t *testing.T) {
	here := &pb.ResponseHeader{ClusterId: 7, Revision: 100, RaftTerm: 2}
	m, s := start(t, here)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	pushes := make(chan driver.Entry, 1000)
	next := func() driver.Entry {
		t.Helper()
		select {
		case e := <-pushes:
			return e
		case <-ctx.Done():
			t.Fatal("nothing is pushed")
			return driver.Entry{}
		}
	}
	m.strays(&pb.ResponseHeader{ClusterId: 8, Revision: 100, RaftTerm: 2})
	if _, err := s.Watch(ctx, "billing", func(driver.Entry) {}); !errors.Is(err, errOtherCluster) {
		t.Errorf("the first watch: %v", err)
	}
	m.strays(nil)
	stop, err := s.Watch(ctx, "billing", func(e driver.Entry) { pushes <- e })
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	m.strays(&pb.ResponseHeader{ClusterId: 8, Revision: 100, RaftTerm: 2})
	m.drop <- struct{}{}
	if e := next(); !errors.Is(e.Lost, errOtherCluster) {
		t.Errorf("a stream of another cluster: %+v is pushed; want the reason why nothing is", e)
	}
	m.strays(nil)
	for e := next(); !e.Unverified; {
		e = next()
	}
}
