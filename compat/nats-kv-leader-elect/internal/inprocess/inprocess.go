// Package inprocess runs NATS servers in a test's own process, and tests in virtual time on them.
package inprocess

import (
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats-server/v2/server/ats"
	"github.com/nats-io/nats.go"
)

// Bubble runs a test in virtual time.
func Bubble(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	Prepare(t)
	synctest.Test(t, test)
}

// Prepare must be called outside of a bubble before the first server starts in one, and then in
// each bubble.
func Prepare(t testing.TB) {
	register()
	dropPools()
	t.Cleanup(dropPools)
}

// register starts the clock that all servers of a process share. It must not start in a bubble,
// since it outlives the bubble.
var register = sync.OnceFunc(ats.Register)

// dropPools drops the timers that the client library keeps for later: a timer of one bubble must
// not be used in another. Objects in a sync.Pool survive one garbage collection, but not two.
func dropPools() {
	runtime.GC()
	runtime.GC()
}

// Start runs a server with these options on an empty directory. Without a port it has no network.
func Start(t testing.TB, o *server.Options) *server.Server {
	t.Helper()
	o.DontListen, o.JetStream, o.NoLog, o.NoSigs, o.StoreDir = o.Port == 0, true, true, true, t.TempDir()
	s, err := server.NewServer(o)
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() {
		s.Shutdown()
		s.WaitForShutdown()
	})
	if !s.ReadyForConnections(time.Minute) {
		t.Fatal("the server does not start")
	}
	return s
}

// Connect connects to the server, and closes the connection after the test.
func Connect(t testing.TB, s *server.Server, opts ...nats.Option) *nats.Conn {
	t.Helper()
	nc, err := nats.Connect("", append(opts, nats.InProcessServer(s))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	return nc
}
