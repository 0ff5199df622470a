// Package natstest runs NATS servers: within the process, or on sockets with the build tag
// integration. Its tests are those of natskv and of its packages that need a server. It is a module
// of its own, so that programs that use natskv do not depend on a release of the server.
package natstest

import (
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats-server/v2/server/ats"
	"github.com/nats-io/nats.go"
	"github.com/tenure-go/tenure/driver/natskv/internal/test/natsnet"
	"github.com/tenure-go/tenure/internal/test/ports"
	"github.com/tenure-go/tenure/internal/test/wait"
)

// StartServer runs a server in this process, on an empty directory unless an option names another
// one. With the tag integration it listens on a socket, unless the test runs in a bubble.
func StartServer(t testing.TB, change ...func(*server.Options)) *server.Server {
	t.Helper()
	o := &server.Options{DontListen: true, JetStream: true, StoreDir: t.TempDir(), NoSigs: true}
	host, port, _ := net.SplitHostPort(natsnet.Inside.Address())
	o.Host = host
	o.Port, _ = strconv.Atoi(port)
	if onSockets && !Virtual() {
		o.DontListen, o.Host, o.Port = false, ports.Host, FreePort(t)
	}
	for _, c := range change {
		c(o)
	}
	o.LogFile = filepath.Join(t.TempDir(), "log")
	s, err := server.NewServer(o)
	if err != nil {
		t.Fatal(err)
	}
	s.ConfigureLogger()
	s.Start()
	t.Cleanup(func() {
		s.Shutdown()
		s.WaitForShutdown()
	})
	if !s.ReadyForConnections(wait.Left()) {
		text, _ := os.ReadFile(o.LogFile)
		t.Fatalf("the server does not start: %s", text)
	}
	if o.DontListen {
		natsnet.Inside.Put(t, natsnet.Host(t, s.ClientURL()), s.InProcessConn)
	}
	return s
}

// WithoutJetStream is for servers that a test itself plays.
func WithoutJetStream(o *server.Options) { o.JetStream = false }

// FreePort returns a port of 127.0.0.1 for a server that may be restarted.
func FreePort(t testing.TB) int {
	t.Helper()
	all, err := ports.Free(1)
	if err != nil {
		t.Fatal(err)
	}
	return all[0]
}

// InBubble runs a test in virtual time. Servers that it starts are within the bubble.
func InBubble(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	PrepareBubble(t)
	synctest.Test(t, test)
}

// PrepareBubble is for kits that make bubbles themselves. Call it before the first server starts in
// one, and then in each bubble.
func PrepareBubble(t testing.TB) {
	register()
	natsnet.EmptyPools()
	t.Cleanup(natsnet.EmptyPools)
}

// Virtual reports whether the caller is in a bubble, whose clock starts in the year 2000.
func Virtual() bool { return time.Now().Year() < 2020 }

// register starts the clock that all servers of a process share. The first server would start it,
// and that must not be in a bubble.
var register = sync.OnceFunc(ats.Register)

// Connect returns a connection to a server of this process, which is closed after the test.
func Connect(t testing.TB, s *server.Server, opts ...nats.Option) *nats.Conn {
	t.Helper()
	return natsnet.Connect(t, s.ClientURL(), opts...)
}
