//go:build integration

package natstest

import (
	"errors"
	"slices"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/natskv"
	"github.com/tenure-go/tenure/driver/natskv/internal/test/natsnet"
	"github.com/tenure-go/tenure/internal/test/wait"
)

// TestOwnOptionsCanBeChanged: the caller's options override ours, and the caller's handlers are
// called as well.
func TestOwnOptionsCanBeChanged(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	var lost natsnet.Errors
	var used *nats.Options
	look := func(o *nats.Options) error { used = o; return nil }
	openStore(t, f.js, f.kv.Bucket(), natskv.OwnConnection(nats.Name("mine"), nats.MaxPingsOutstanding(5), lost.OfLosses(), look))
	if used.Name != "mine" || used.MaxPingsOut != 5 {
		t.Errorf("connected with %+v", used)
	}
	clients, err := f.server.Connz(nil)
	f.must(err)
	if !slices.ContainsFunc(clients.Conns, func(c *server.ConnInfo) bool { return c.Name == "mine" }) {
		t.Errorf("no client has the name: %+v", clients.Conns)
	}
	restart(t, f.server, func() {})
	wait.Until(t, "the caller's handler is called for the loss", func() bool { return len(lost.All()) > 0 })
	broken := errors.New("broken")
	_, err = natskv.Open(wait.Context(t), f.js, f.kv.Bucket(), natskv.OwnConnection(func(*nats.Options) error { return broken }))
	if !errors.Is(err, broken) {
		t.Errorf("with an option that fails: %v", err)
	}
}

// TestOwnConnectionIsApart: the own connection no longer needs the given one, and ends with the
// store.
func TestOwnConnectionIsApart(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	given := natsnet.Connect(t, f.server.ClientURL(), nats.CustomInboxPrefix("_MINE"))
	js := natsnet.JetStream(t, given)
	given.Close()
	s := openStore(t, js, f.kv.Bucket(), natskv.OwnConnection())
	h := watchAll(t, s, testKey)
	h.await(t, versionOf(f.put(testKey, "v")))
	if e := f.read(s, testKey); string(e.Value) != "v" {
		t.Errorf("read: %+v", e)
	}
	before := f.server.NumClients()
	for range 2 {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	wait.Until(t, "the connection ends with the store", func() bool { return f.server.NumClients() < before })
	if _, err := s.Read(wait.Context(t), testKey); !errors.Is(err, nats.ErrConnectionClosed) {
		t.Errorf("after Close: %v", err)
	}
}

// TestOwnConnectionFails: no bucket is opened, and no connection is left behind.
func TestOwnConnectionFails(t *testing.T) {
	t.Parallel()
	s := StartServer(t, func(o *server.Options) { o.Username, o.Password = "user", "x" })
	given := natsnet.Connect(t, s.ClientURL(), nats.UserInfo("user", "x"))
	js := natsnet.JetStream(t, given)
	if _, err := natskv.Open(wait.Context(t), js, "B", natskv.OwnConnection()); !errors.Is(err, jetstream.ErrBucketNotFound) {
		t.Errorf("no bucket: %v", err)
	}
	wait.Until(t, "the connection is closed", func() bool { return s.NumClients() == 1 })
	_, err := natskv.Open(wait.Context(t), js, "B", natskv.OwnConnection(nats.UserInfo("user", "wrong")))
	if c, ok := errors.AsType[*natskv.ConnectError](err); !errors.Is(err, driver.ErrDenied) || !ok || errors.Is(c.Err, driver.ErrDenied) || !errors.Is(c.Err, nats.ErrAuthorization) {
		t.Errorf("wrong credentials: %v", err)
	}
	s.Shutdown()
	if _, err := natskv.Open(wait.Context(t), js, "B", natskv.OwnConnection()); !errors.Is(err, nats.ErrNoServers) {
		t.Errorf("no server: %v", err)
	}
}
