package natsnet

import (
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/tenure-go/tenure/internal/test/wait"
)

// Connect returns an established connection, which is closed after the test.
func Connect(t testing.TB, url string, opts ...nats.Option) *nats.Conn {
	t.Helper()
	opts = append([]nats.Option{
		nats.ReconnectWait(10 * time.Millisecond),
		nats.MaxReconnects(-1),
		nats.RetryOnFailedConnect(true),
		nats.SetCustomDialer(Inside),
		nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}),
	}, opts...)
	nc, err := nats.Connect(url, opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	wait.Until(t, "the connection is made", nc.IsConnected)
	return nc
}

// JetStream returns a context without options.
func JetStream(t testing.TB, nc *nats.Conn) jetstream.JetStream {
	t.Helper()
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	return js
}

// Errors collects what a connection reports, such as why it was lost.
type Errors struct {
	mu  sync.Mutex
	all []error
}

// OfLosses is a connection option that collects the connection's losses.
func (e *Errors) OfLosses() nats.Option {
	return nats.DisconnectErrHandler(func(_ *nats.Conn, err error) { e.Add(err) })
}

// OfServer is a connection option that collects the errors that the server sends unasked.
func (e *Errors) OfServer() nats.Option {
	return nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { e.Add(err) })
}

// Add adds an error.
func (e *Errors) Add(err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.all = append(e.all, err)
}

// All returns the errors so far.
func (e *Errors) All() []error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.all)
}

// Unpinged leaves it to requests to find out that a server is gone.
var Unpinged = nats.PingInterval(time.Hour)

// InBubble runs a test in virtual time, without servers of package natstest.
func InBubble(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	EmptyPools()
	defer EmptyPools()
	synctest.Test(t, test)
}

// EmptyPools drops the timers that the client library keeps for later use: none may pass from one
// bubble to another.
func EmptyPools() {
	runtime.GC()
	runtime.GC()
}
