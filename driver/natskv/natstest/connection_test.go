package natstest

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/natskv"
	"github.com/tenure-go/tenure/driver/natskv/internal/connection"
	"github.com/tenure-go/tenure/driver/natskv/internal/test/natsnet"
	"github.com/tenure-go/tenure/internal/test/wait"
)

// TestForcedReconnect: if a request has no answer and the server gives no sign of life, the store
// tries another server. Otherwise the write would fail until its own lease was over.
func TestForcedReconnect(t *testing.T) {
	InBubble(t, forcedReconnect)
}

func forcedReconnect(t *testing.T) {
	f := newFixture(t)
	given, first := natsnet.TwoWays(t, f.server.ClientURL())
	var lost natsnet.Errors
	s := openStore(t, natsnet.JetStream(t, given), f.kv.Bucket(),
		natskv.OwnConnection(lost.OfLosses(), nats.IgnoreDiscoveredServers(), natsnet.Unpinged))
	v, err := s.CompareAndSwap(wait.Context(t), testKey, "", []byte("first"))
	f.must(err)
	first.Cut()
	start := time.Now()
	if _, err := s.CompareAndSwap(wait.Context(t), testKey, v, []byte("second")); !leftOpen(err) {
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

// The store never changes the handlers, the options or the connection itself.
func TestBorrowedConnectionIsUnchanged(t *testing.T) { InBubble(t, borrowedIsNotTouched) }

func borrowedIsNotTouched(t *testing.T) {
	f := newFixture(t)
	p := natsnet.StartProxy(t, f.server.ClientURL())
	var lost natsnet.Errors
	nc := natsnet.Connect(t, p.URL(), lost.OfLosses(), natsnet.Unpinged, nats.Name("theirs"))
	before, handlers := nc.Opts, handlersOf(nc)
	clients := f.server.NumClients()
	s := openStore(t, natsnet.JetStream(t, nc), f.kv.Bucket(), natskv.Create())
	h := watchAll(t, s, testKey)
	h.await(t, versionOf(f.put(testKey, "v")))
	p.Cut()
	ctx, cancel := context.WithTimeout(t.Context(), 1100*time.Millisecond)
	defer cancel()
	if _, err := s.Read(ctx, testKey); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a read without an answer: %v; want it to end with its context", err)
	}
	connection.Borrow(natsnet.JetStream(t, nc)).MoveOn()
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

// TestForeignVersion: a version that the store did not return must not become a condition that
// holds.
func TestForeignVersion(t *testing.T) {
	f := newFixture(t)
	for _, v := range []driver.Version{"0", "-1", "1 ", "never", "1e3", "99999999999999999999", "unwritten ", "unwritten x"} {
		if _, err := f.store.CompareAndSwap(wait.Context(t), testKey, v, []byte("v")); !leftOpen(err) {
			t.Errorf("swap from version %q: %v; want an error that is no conflict", v, err)
		}
	}
}

// TestDeletedBucket: reads name the remedy, since the server reports only that a stream is not
// found. A write is sent once; the client library would try twice more after 250 ms each. Another
// stream that listens on the subjects then must not store our records.
func TestDeletedBucket(t *testing.T) {
	f := newFixture(t)
	name := f.kv.Bucket()
	f.must(f.js.DeleteKeyValue(wait.Context(t), name))
	_, err := f.store.Read(wait.Context(t), testKey)
	if err == nil || !strings.Contains(err.Error(), "the bucket is gone") || !strings.Contains(err.Error(), "nats kv add "+name) {
		t.Errorf("read: %v", err)
	}
	before := f.nc.Stats().OutMsgs
	_, err = f.store.CompareAndSwap(wait.Context(t), testKey, "", []byte("v"))
	if !errors.Is(err, nats.ErrNoResponders) || !leftOpen(err) {
		t.Errorf("swap without a stream: %v; want no responders", err)
	}
	if sent := f.nc.Stats().OutMsgs - before; sent != 1 {
		t.Errorf("%d messages were sent for one swap", sent)
	}
	var stranger jetstream.Stream
	wait.Until(t, "the server has removed the bucket and takes a stream", func() bool {
		var err error
		stranger, err = f.js.CreateStream(wait.Context(t), jetstream.StreamConfig{Name: "S", Subjects: []string{"$KV.>"}})
		return err == nil
	})
	if err := failure(f.store.CompareAndSwap(wait.Context(t), testKey, "", []byte("v"))); !leftOpen(err) {
		t.Errorf("swap into another stream: %v; want an error", err)
	}
	info, err := stranger.Info(wait.Context(t))
	f.must(err)
	if info.State.Msgs != 0 {
		t.Errorf("the other stream holds %d of our messages", info.State.Msgs)
	}
}

// member campaigns until the test ends or stop is called.
func (f *fixture) member(t *testing.T, s *natskv.Store, id string, onEvent func(tenure.Event)) (e *tenure.Election, stop func()) {
	e, err := tenure.New(s, testKey, tenure.Config{ID: id, Lease: 5 * time.Second, OnEvent: onEvent})
	f.must(err)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = e.Run(ctx, func(ctx context.Context, _ *tenure.Term) error {
			<-ctx.Done()
			return nil
		})
	}()
	stop = func() {
		cancel()
		<-ended
	}
	t.Cleanup(stop)
	return e, stop
}

// TestGoodTermsAboveTheFloor: a handle that hides its stream sees the bare sequence, while terms of
// the other members are times in microseconds. None of these terms is lost. The last possible term
// is malformed over a handle as well.
func TestGoodTermsAboveTheFloor(t *testing.T) { InBubble(t, goodTermsAboveTheFloor) }

func goodTermsAboveTheFloor(t *testing.T) {
	f := newFixture(t)
	alarms := make(chan tenure.Event, 100)
	first, stop := f.member(t, f.store, "first", nil)
	leads := func(s tenure.Status) bool { return s.State == tenure.StateLeader }
	before, err := first.Wait(wait.Context(t), leads)
	f.must(err)
	bare := closedAfter(t, natskv.FromKeyValue(wrapped{f.kv}))
	second, _ := f.member(t, bare, "second", func(e tenure.Event) {
		if e.Kind == tenure.EventAlarm {
			alarms <- e
		}
	})
	_, err = second.Wait(wait.Context(t), func(s tenure.Status) bool { return s.Leader.ID == "first" })
	f.must(err)
	stop()
	after, err := second.Wait(wait.Context(t), leads)
	f.must(err)
	if after.Term <= before.Term || before.Term < 1<<49 { // the time in a bubble begins in 2000
		t.Errorf("term %d after term %d", after.Term, before.Term)
	}
	if len(alarms) > 0 {
		t.Errorf("alarmed: %v", (<-alarms).Cause)
	}
	f.put(testKey, fmt.Sprintf(`{"leaderID":"x","incarnation":"i","term":%d,"leaseMillis":5000,"nonce":"n"}`, uint64(1<<53-1)))
	if e := <-alarms; !errors.Is(e.Cause, &tenure.StoreError{Kind: driver.Malformed}) {
		t.Errorf("alarmed: %v", e.Cause)
	}
	again, err := second.Wait(wait.Context(t), func(s tenure.Status) bool { return leads(s) && s.Term > after.Term })
	f.must(err)
	if again.Term > after.Term+100 {
		t.Errorf("term %d after term %d", again.Term, after.Term)
	}
}
