package natstest

import (
	"fmt"
	"math/rand/v2"
	"net"
	"sync/atomic"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/tenure-go/tenure/internal/test/wait"
)

// ServerOptions returns the options of a server within the process that stores in a directory.
func ServerOptions(dir string) *server.Options {
	o := &server.Options{DontListen: true, JetStream: true, StoreDir: dir, NoLog: true, NoSigs: true}
	o.Host, o.Port = inside.address()
	return o
}

// StartServer runs a server in this process, on an empty directory unless an option names another
// one. With the tag integration it listens on a socket, unless the test runs in a bubble.
func StartServer(t testing.TB, change ...func(*server.Options)) *server.Server {
	t.Helper()
	o := ServerOptions(t.TempDir())
	if onSockets && !Virtual() {
		o.DontListen, o.Host, o.Port = false, "127.0.0.1", FreePort(t)
	}
	for _, c := range change {
		c(o)
	}
	s, err := server.NewServer(o)
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() {
		s.Shutdown()
		s.WaitForShutdown()
	})
	if !s.ReadyForConnections(wait.Left()) {
		t.Fatal("the server does not start")
	}
	if o.DontListen {
		inside.put(t, Host(t, s.ClientURL()), s.InProcessConn)
	}
	return s
}

// WithoutJetStream is for servers that a test itself plays.
func WithoutJetStream(o *server.Options) { o.JetStream = false }

// lastPort is the last port that FreePort tried. It begins anywhere, so that another run of these
// tests has others.
var lastPort atomic.Int64

func init() { lastPort.Store(rand.Int64N(10_000)) }

// FreePort returns a free port from 10000 to 19999, below those that systems give to clients and to
// programs that take any port: a server that is restarted finds its own port free.
func FreePort(t testing.TB) int {
	t.Helper()
	for range 10_000 {
		port := 10_000 + int(lastPort.Add(1)%10_000)
		if l, err := net.Listen("tcp", fmt.Sprint("127.0.0.1:", port)); err == nil {
			_ = l.Close()
			return port
		}
	}
	t.Fatal("no port is free")
	return 0
}
