//go:build integration

package natskv

import (
	"errors"
	"net"
	"runtime"
	"strconv"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/natskv/internal/natstest"
	"github.com/tenure-go/tenure/internal/test/wait"
)

// TestKilledServer: a server that is killed without warning keeps versions and the order of writes.
func TestKilledServer(t *testing.T) {
	t.Parallel()
	p := startProcess(t)
	nc := connect(t, p.url())
	js := newJetStream(t, nc)
	kv := addBucket(t, js)
	store := openStore(t, js, kv.Bucket())
	v := driver.Version(unwritten + "0")
	for range 50 {
		var err error
		if v, err = store.CompareAndSwap(wait.Context(t), testKey, v, []byte("v")); err != nil {
			t.Fatal(err)
		}
	}
	pushed := watchAll(t, store, testKey)

	p.kill()
	wait.Until(t, "the connection is lost", func() bool { return !nc.IsConnected() })
	if _, err := store.CompareAndSwap(wait.Context(t), testKey, v, []byte("lost")); outcomeOf(err) != open {
		t.Errorf("a swap on a dead server: %v; want an error that leaves it open", err)
	}
	p.start()
	wait.Until(t, "the server is back", func() bool { return readable(store) })

	e, err := store.Read(wait.Context(t), testKey)
	if err != nil || e.Version != v || e.Floor < 50 {
		t.Fatalf("after the restart: %+v, %v; want version %s", e, err, v)
	}
	if v, err = store.CompareAndSwap(wait.Context(t), testKey, v, []byte("after")); err != nil {
		t.Fatal(err)
	}
	pushed.await(t, v)
}

// TestCloseLeavesNothing: Close leaves nothing behind on a connection that stays open. The server's
// goroutines do not count.
func TestCloseLeavesNothing(t *testing.T) {
	nc := connect(t, startProcess(t).url())
	js := newJetStream(t, nc)
	f := &fixture{TB: t, nc: nc, js: js, kv: addBucket(t, js)}
	before := runtime.NumGoroutine()
	subs := f.nc.NumSubscriptions()
	for name, s := range f.each() {
		h := watchAll(t, s, testKey)
		h.await(t, versionOf(f.put(testKey, "v")))
		f.must(s.Close())
		f.must(s.Close())
		if _, err := s.Watch(wait.Context(t), testKey, func(driver.Entry) {}); !errors.Is(err, errClosed) {
			t.Errorf("%s: a watch after close: %v", name, err)
		}
		h.stop()
		f.read(s, testKey)
	}
	wait.Until(t, "the goroutines are gone", func() bool { return runtime.NumGoroutine() <= before })
	wait.Until(t, "the subscriptions are gone", func() bool { return f.nc.NumSubscriptions() <= subs })
}

// TestRefusedCredentials: a server that comes back with other users is reported as a missing right.
// The connection keeps trying without end, because the next change of the configuration may admit
// it.
func TestRefusedCredentials(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	var refusals natstest.Errors
	s := openStore(t, newJetStream(t, connect(t, f.server.ClientURL(), nats.UserInfo("user", "x"))), f.kv.Bucket(),
		OwnConnection(nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { refusals.Add(err) })))
	with := func(password string) func(*server.Options) {
		return func(o *server.Options) { o.Username, o.Password = "user", password }
	}
	refusing := restart(t, f.server, func() {}, with("other"))
	wait.Until(t, "the refusal is reported", func() bool {
		_, err := s.CompareAndSwap(wait.Context(t), testKey, "", []byte("v"))
		return errors.Is(err, driver.ErrDenied) && errors.Is(err, nats.ErrAuthorization)
	})
	wait.Until(t, "it is tried again and again", func() bool { return len(refusals.All()) >= 4 })
	restart(t, refusing, func() {}, with("x"))
	wait.Until(t, "the store is reached again", func() bool { return readable(s) })
}

// restart stops a server and runs another one on its directory and address.
func restart(t testing.TB, s *server.Server, between func(), change ...func(*server.Options)) *server.Server {
	t.Helper()
	host, port, err := net.SplitHostPort(natstest.Host(t, s.ClientURL()))
	if err != nil {
		t.Fatal(err)
	}
	dir := s.StoreDir()
	s.Shutdown()
	s.WaitForShutdown()
	if between != nil {
		between()
	}
	return startServer(t, append(change, func(o *server.Options) {
		o.StoreDir, o.Host = dir, host
		o.Port, _ = strconv.Atoi(port)
	})...)
}
