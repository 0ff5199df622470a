//go:build integration

package natskv

import (
	"context"
	"errors"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/natskv/internal/connection"
	"github.com/tenure-go/tenure/driver/natskv/internal/natstest"
	"github.com/tenure-go/tenure/internal/test/wait"
)

// TestLostAnswer covers the dangerous fault: the write is applied and the writer cannot know.
func TestLostAnswer(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	p := natstest.StartProxy(t, f.server.ClientURL())
	js := newJetStream(t, connect(t, p.URL()))
	store := openStore(t, js, f.kv.Bucket())
	first, err := store.CompareAndSwap(wait.Context(t), testKey, unwritten+"0", []byte("first"))
	f.must(err)

	heal := p.Cut()
	ctx, cancel := context.WithCancel(wait.Context(t))
	swapped := make(chan error, 1)
	go func() {
		_, err := store.CompareAndSwap(ctx, testKey, first, []byte("second"))
		swapped <- err
	}()
	wait.Until(t, "the write is applied", func() bool { return string(f.read(f.store, testKey).Value) == "second" })
	cancel()
	if err := <-swapped; outcomeOf(err) != open {
		t.Fatalf("a swap whose answer is lost: %v; want an error that leaves it open", err)
	}
	heal()

	wait.Until(t, "the store is reached again", func() bool { return readable(store) })
	e := f.read(store, testKey)
	if string(e.Value) != "second" {
		t.Errorf("a read of the leader shows %+v; want the write whose answer was lost", e)
	}
	if _, err := store.CompareAndSwap(wait.Context(t), testKey, first, []byte("third")); !errors.Is(err, driver.ErrConflict) {
		t.Errorf("a second swap from the same version: %v; want a conflict", err)
	}
}

// TestOfflineSendsNothing: the client library keeps publishes while there is no connection and
// sends them later.
func TestOfflineSendsNothing(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	nc := connect(t, f.server.ClientURL())
	store := openStore(t, newJetStream(t, nc), f.kv.Bucket())
	restart(t, f.server, func() {
		wait.Until(t, "the connection is lost", func() bool { return !nc.IsConnected() })
		_, err := store.CompareAndSwap(wait.Context(t), testKey, unwritten+"0", []byte("late"))
		if !errors.Is(err, connection.ErrOffline) {
			t.Errorf("a swap without a connection: %v; want an error that there is none", err)
		}
	})
	wait.Until(t, "the server is back", func() bool { return readable(store) })
	f.must(nc.Flush())
	if e := f.read(store, testKey); !e.Absent() {
		t.Errorf("a swap made without a connection was sent later: %+v", e)
	}
}

// TestLostConnection: a request whose connection is gone must not wait for its context, because the
// caller could try again.
func TestLostConnection(t *testing.T) {
	t.Parallel()
	s := startServer(t, withoutJetStream)
	server := connect(t, s.ClientURL())
	asked := make(chan *nats.Msg, 10)
	if _, err := server.ChanSubscribe(">", asked); err != nil {
		t.Fatal(err)
	}
	if err := server.Flush(); err != nil {
		t.Fatal(err)
	}
	p := natstest.StartProxy(t, s.ClientURL())
	store := unopened(t, connect(t, p.URL()))
	failed := make(chan error)
	go func() {
		_, err := store.Read(context.Background(), testKey)
		failed <- err
	}()
	<-asked
	p.Drop()
	select {
	case err := <-failed:
		if !errors.Is(err, connection.ErrLost) && !errors.Is(err, connection.ErrOffline) {
			t.Errorf("a read whose connection was lost: %v", err)
		}
	case <-wait.Context(t).Done():
		t.Error("a read waits on though its connection was lost")
	}
}

// TestWatchResumes: changes during the loss of the connection are reported when it is back.
func TestWatchResumes(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	p := natstest.StartProxy(t, f.server.ClientURL())
	store := openStore(t, newJetStream(t, connect(t, p.URL())), f.kv.Bucket())
	h := watchAll(t, store, testKey)
	h.await(t, versionOf(f.put(testKey, "before")))

	heal := p.Cut()
	missed := f.put(testKey, "meanwhile")
	heal()

	h.await(t, versionOf(missed))
	h.await(t, versionOf(f.put(testKey, "after")))
}
