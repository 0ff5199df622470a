package natstest

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/tenure-go/tenure/internal/test/ports"
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
		o.DontListen, o.Host, o.Port = false, ports.Host, FreePort(t)
	}
	for _, c := range change {
		c(o)
	}
	s, err := server.NewServer(o)
	if err != nil {
		t.Fatal(err)
	}
	var faults serverFaults
	s.SetLogger(&faults, false, false)
	s.Start()
	t.Cleanup(func() {
		s.Shutdown()
		s.WaitForShutdown()
	})
	if !s.ReadyForConnections(wait.Left()) {
		t.Fatalf("the server does not start: %q", faults.all())
	}
	if o.DontListen {
		inside.put(t, Host(t, s.ClientURL()), s.InProcessConn)
	}
	return s
}

// serverFaults keeps the errors that a server logs, which say why it does not start.
type serverFaults struct {
	mu    sync.Mutex
	lines []string
}

func (f *serverFaults) all() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.lines)
}

// Errorf keeps an error.
func (f *serverFaults) Errorf(format string, args ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.lines) < 20 {
		f.lines = append(f.lines, fmt.Sprintf(format, args...))
	}
}

// Fatalf keeps an error that ends the start.
func (f *serverFaults) Fatalf(format string, args ...any) { f.Errorf(format, args...) }

// Noticef, Warnf, Debugf and Tracef drop what is no error.
func (f *serverFaults) Noticef(string, ...any) {}
func (f *serverFaults) Warnf(string, ...any)   {}
func (f *serverFaults) Debugf(string, ...any)  {}
func (f *serverFaults) Tracef(string, ...any)  {}

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
