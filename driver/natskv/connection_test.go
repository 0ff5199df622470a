package natskv

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/tenure-go/tenure/driver/natskv/internal/connection"
	"github.com/tenure-go/tenure/driver/natskv/internal/natstest"
	"github.com/tenure-go/tenure/internal/test/wait"
)

// TestForcedReconnect: if a request has no answer and the server gives no sign of life, the store
// tries another server. Otherwise the write would fail until its own lease was over.
func TestForcedReconnect(t *testing.T) {
	inBubble(t, forcedReconnect)
}

func forcedReconnect(t *testing.T) {
	f := newFixture(t)
	given, first := natstest.TwoWays(t, f.server.ClientURL())
	var lost natstest.Errors
	s := openStore(t, newJetStream(t, given), f.kv.Bucket(),
		OwnConnection(lost.OfLosses(), nats.IgnoreDiscoveredServers(), natstest.Unpinged))
	v, err := s.CompareAndSwap(wait.Context(t), testKey, "", []byte("first"))
	f.must(err)
	first.Cut()
	start := time.Now()
	if _, err := s.CompareAndSwap(wait.Context(t), testKey, v, []byte("second")); outcomeOf(err) != open {
		t.Errorf("a swap whose connection was given up: %v; want an error that leaves it open", err)
	}
	wait.Until(t, "one request is enough", func() bool { return len(lost.All()) > 0 })
	// The connection is doubted after 300 ms and has 500 ms for a sign of life.
	if d := time.Since(start); d > 900*time.Millisecond {
		t.Errorf("given up only after %v", d)
	}
	wait.Until(t, "the store is reached again", func() bool { return readable(s) })
	t.Logf("reached again after %v", time.Since(start))
	if e := f.read(s, testKey); string(e.Value) != "second" {
		t.Errorf("read %+v; want the write whose answer was lost", e)
	}
	if all := lost.All(); !errors.Is(all[0], connection.ErrSilent) {
		t.Errorf("lost %v; want it to be our own doing", all)
	}
}

// TestVanishedRequest: a stream without a leader never answers a request that it has not answered
// in time. There is time for more tries.
func TestVanishedRequest(t *testing.T) {
	for what, call := range map[string]func(t *testing.T, s *Store) error{
		"read": func(t *testing.T, s *Store) error { _, err := s.Read(wait.Context(t), testKey); return err },
		"write": func(t *testing.T, s *Store) error {
			_, err := s.CompareAndSwap(wait.Context(t), testKey, "1", []byte("v"))
			return err
		},
	} {
		t.Run(what, func(t *testing.T) { inBubble(t, func(t *testing.T) { vanishedRequest(t, call) }) })
	}
}

func vanishedRequest(t *testing.T, call func(t *testing.T, s *Store) error) {
	server := startServer(t, withoutJetStream)
	nc := connect(t, server.ClientURL())
	hearer := connect(t, server.ClientURL())
	if _, err := hearer.SubscribeSync(">"); err != nil {
		t.Fatal(err)
	}
	if err := hearer.Flush(); err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	err := call(t, unopened(t, nc))
	if d := time.Since(start); !errors.Is(err, connection.ErrUnanswered) || outcomeOf(err) != open || d > 3*time.Second {
		t.Errorf("%v after %v; want an error that leaves it open, in time", err, d)
	}
}

// TestReadsQueue: the reads of thousands of followers must not delay the leaders' renewals in the
// server's queue.
func TestReadsQueue(t *testing.T) { inBubble(t, readsQueue) }

func readsQueue(t *testing.T) {
	const readsAtOnce = 128
	server := startServer(t, withoutJetStream)
	hearer := connect(t, server.ClientURL())
	asked := make(chan *nats.Msg, 2*readsAtOnce)
	if _, err := hearer.ChanSubscribe(">", asked); err != nil {
		t.Fatal(err)
	}
	if err := hearer.Flush(); err != nil {
		t.Fatal(err)
	}
	s := unopened(t, connect(t, server.ClientURL()))
	ctx, leave := context.WithCancel(t.Context())
	var reads sync.WaitGroup
	for range readsAtOnce + 10 {
		reads.Go(func() { _, _ = s.Read(ctx, testKey) })
	}
	wait.Until(t, "the reads are sent", func() bool { return len(asked) == readsAtOnce })
	reads.Go(func() { _, _ = s.CompareAndSwap(ctx, testKey, "1", []byte("v")) })
	wait.Until(t, "a write goes past them", func() bool { return len(asked) == readsAtOnce+1 })
	leave()
	reads.Wait()
	if n := len(asked); n != readsAtOnce+1 {
		t.Errorf("%d requests; want %d reads and a write", n, readsAtOnce)
	}
	short, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if _, err := s.Read(short, testKey); err == nil {
		t.Error("a read without an answer succeeded")
	}
	for range len(asked) {
		<-asked
	}
	go func() { _, _ = s.Read(t.Context(), testKey) }()
	select {
	case m := <-asked:
		if !strings.Contains(m.Subject, getMessage) {
			t.Errorf("asked on %s", m.Subject)
		}
	case <-wait.Context(t).Done():
		t.Error("after callers have left, no read gets through")
	}
}

// The store never changes the handlers, the options or the connection itself.
func TestBorrowedConnectionIsUnchanged(t *testing.T) { inBubble(t, borrowedIsNotTouched) }

func borrowedIsNotTouched(t *testing.T) {
	f := newFixture(t)
	p := natstest.StartProxy(t, f.server.ClientURL())
	var lost natstest.Errors
	nc := connect(t, p.URL(), lost.OfLosses(), natstest.Unpinged, nats.Name("theirs"))
	before, handlers := nc.Opts, handlersOf(nc)
	clients := f.server.NumClients()
	s := openStore(t, newJetStream(t, nc), f.kv.Bucket(), Create())
	h := watchAll(t, s, testKey)
	h.await(t, versionOf(f.put(testKey, "v")))
	p.Cut()
	ctx, cancel := context.WithTimeout(t.Context(), 1100*time.Millisecond)
	defer cancel()
	if _, err := s.Read(ctx, testKey); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a read without an answer: %v; want it to end with its context", err)
	}
	s.conn.MoveOn()
	if n := nc.Stats().Reconnects; n != 0 || len(lost.All()) != 0 || !nc.IsConnected() {
		t.Errorf("%d reconnects, lost %v", n, lost.All())
	}
	if err := s.Close(); err != nil || !nc.IsConnected() {
		t.Errorf("after Close: %v, connected %v", err, nc.IsConnected())
	}
	if after := handlersOf(nc); after != handlers {
		t.Errorf("the handlers are %v; want %v", after, handlers)
	}
	a, b := reflect.ValueOf(before), reflect.ValueOf(nc.Opts)
	for i := range a.NumField() {
		if a.Field(i).Kind() != reflect.Func && !reflect.DeepEqual(a.Field(i).Interface(), b.Field(i).Interface()) {
			t.Errorf("the option %s was changed", a.Type().Field(i).Name)
		}
	}
	if n := f.server.NumClients(); n > clients {
		t.Errorf("%d clients on the server; want %d", n, clients)
	}
}

// handlersOf returns the addresses of a connection's handlers.
func handlersOf(nc *nats.Conn) [5]uintptr {
	return [5]uintptr{
		reflect.ValueOf(nc.ErrorHandler()).Pointer(), reflect.ValueOf(nc.DisconnectErrHandler()).Pointer(),
		reflect.ValueOf(nc.ReconnectHandler()).Pointer(), reflect.ValueOf(nc.ClosedHandler()).Pointer(),
		reflect.ValueOf(nc.Opts.CustomReconnectDelayCB).Pointer(),
	}
}
