package stores

import (
	"errors"
	"net"
	"os"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
)

// dialTimeout is how long connecting to one server may take.
const dialTimeout = 2 * time.Second

// keepRefusals makes the client report a refusal in the words of the server. A server that refuses
// a client sends the reason and hangs up, at times before the client has sent its whole greeting.
// The library would then return the failed write, and not read the reason.
func keepRefusals(o *nats.Options) error {
	if o.Dialer == nil && o.CustomDialer == nil { // the proxy of a context
		o.CustomDialer = dialer{net.Dialer{Timeout: dialTimeout}}
		o.SkipHostLookup = true // net.Dialer divides the timeout among the addresses of a name
	}
	return nil
}

type dialer struct{ net.Dialer }

// Dial returns a connection whose first writes do not fail.
func (d dialer) Dial(network, address string) (net.Conn, error) {
	c, err := d.Dialer.Dial(network, address)
	if err != nil {
		return nil, err
	}
	return &greeting{Conn: c}, nil
}

// firstWrites are enough for TLS and the library's greeting.
const firstWrites = 8

// greeting is a connection that hides an error of its first writes, and sends nothing after it. The
// read that follows returns the reason of the server, if it sent one, and then fails as well.
type greeting struct {
	net.Conn
	writes atomic.Int32
	failed atomic.Pointer[error] // of the first writes
}

// Write returns no error of the first writes, unless it is a timeout.
func (g *greeting) Write(b []byte) (int, error) {
	first := g.writes.Load() < firstWrites && g.writes.Add(1) <= firstWrites
	failed := g.failed.Load()
	switch {
	case failed != nil && first:
		return len(b), nil
	case failed != nil:
		return 0, *failed
	}
	n, err := g.Conn.Write(b)
	if err != nil && first && !errors.Is(err, os.ErrDeadlineExceeded) {
		g.failed.Store(&err)
		return len(b), nil
	}
	return n, err
}
