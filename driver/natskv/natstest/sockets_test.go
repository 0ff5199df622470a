//go:build integration

package natstest

import (
	"bytes"
	"errors"
	"runtime"
	"strings"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/drivertest"
	"github.com/tenure-go/tenure/driver/natskv"
	"github.com/tenure-go/tenure/driver/natskv/internal/test/natsnet"
	"github.com/tenure-go/tenure/electiontest"
	"github.com/tenure-go/tenure/internal/test/wait"
)

// long skips repetitions of a test where one pass is enough.
func long(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("one pass only, because of -short")
	}
}

func (v variant) skip(t *testing.T) {
	t.Helper()
	if v.rare {
		long(t)
	}
}

func TestConformanceOnSockets(t *testing.T) {
	for _, v := range variants() {
		t.Run(v.name, func(t *testing.T) {
			v.skip(t)
			s := StartServer(t, withLimitedUser)
			drivertest.Run(t, func(t testing.TB) drivertest.Harness { return v.harness(t, s) })
		})
	}
}

func TestElectionsOnSockets(t *testing.T) {
	for _, v := range variants() {
		t.Run(v.name, func(t *testing.T) {
			v.skip(t)
			t.Parallel()
			s := StartServer(t, withLimitedUser)
			electiontest.Run(t, func(t testing.TB) drivertest.Harness { return v.harness(t, s) })
		})
	}
}

// TestCloseLeavesNothing: Close leaves nothing behind on a connection that stays open. The server's
// goroutines do not count.
func TestCloseLeavesNothing(t *testing.T) {
	f := newFixture(t)
	goroutines := func() int {
		all := make([]byte, 4<<20)
		all = all[:runtime.Stack(all, true)]
		return bytes.Count(all, []byte("nats.go")) + bytes.Count(all, []byte("driver/natskv."))
	}
	before := goroutines()
	subs := f.nc.NumSubscriptions()
	for name, s := range f.each() {
		h := watchAll(t, s, testKey)
		h.await(t, versionOf(f.put(testKey, "v")))
		f.must(s.Close())
		f.must(s.Close())
		if _, err := s.Watch(wait.Context(t), testKey, func(driver.Entry) {}); err == nil || !strings.Contains(err.Error(), "closed") {
			t.Errorf("%s: a watch after close: %v", name, err)
		}
		h.stop()
		f.read(s, testKey)
	}
	wait.Until(t, "the goroutines are gone", func() bool { return goroutines() <= before })
	wait.Until(t, "the subscriptions are gone", func() bool { return f.nc.NumSubscriptions() <= subs })
}

// TestRefusedCredentials: a server that comes back with other users is reported as a missing right.
// The connection keeps trying without end, because the next change of the configuration may admit
// it.
func TestRefusedCredentials(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	var refusals natsnet.Errors
	s := openStore(t, natsnet.JetStream(t, natsnet.Connect(t, f.server.ClientURL(), nats.UserInfo("user", "x"))), f.kv.Bucket(),
		natskv.OwnConnection(refusals.OfServer()))
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
