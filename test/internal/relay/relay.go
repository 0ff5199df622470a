// Package relay passes bytes between a client and a server, and loses, holds or delays them as a
// network can.
package relay

import (
	"context"
	"io"
	"net"
	"net/url"
	"sync"
	"time"

	"github.com/tenure-go/tenure/internal/test/ports"
)

// Network is where a relay listens and dials.
type Network interface {
	Listen(network, address string) (net.Listener, error)
	DialContext(ctx context.Context, network, address string) (net.Conn, error)
}

// loopback is the network of this machine.
type loopback struct{ net.Dialer }

func (*loopback) Listen(network, address string) (net.Listener, error) {
	return net.Listen(network, address)
}

// Relay passes connections on to a server.
type Relay struct {
	network Network
	address string
	server  string
	ways    sync.WaitGroup

	mu       sync.Mutex
	listener net.Listener
	mode     mode
	late     time.Duration // the delay of passing bytes
	changed  chan struct{} // closed at the next change of mode
	links    []*link
	closed   bool
}

// link is a connection of a client, with the connection to the server that belongs to it.
type link struct {
	client, server net.Conn
	gone           chan struct{} // closed with both
}

// New starts a relay to the server of a URL.
func New(serverURL string) (*Relay, error) {
	address, err := url.Parse(serverURL)
	if err != nil {
		return nil, err
	}
	l, err := listen()
	if err != nil {
		return nil, err
	}
	return begin(&loopback{}, l, address.Host), nil
}

// Over starts a relay from one address of a network to another. In a network of pipes it works in
// the bubbles of testing/synctest.
func Over(n Network, at, server string) (*Relay, error) {
	l, err := n.Listen("tcp", at)
	if err != nil {
		return nil, err
	}
	return begin(n, l, server), nil
}

func begin(n Network, l net.Listener, server string) *Relay {
	r := &Relay{network: n, address: l.Addr().String(), server: server, listener: l, changed: make(chan struct{})}
	r.ways.Go(func() { r.accept(l) })
	return r
}

// listen uses a port outside the range that the system gives to clients: after a Cut it must still
// be free for Restore.
func listen() (l net.Listener, err error) {
	for range 20 {
		var free []int
		if free, err = ports.Free(1); err != nil {
			return nil, err
		}
		if l, err = net.Listen("tcp", ports.Address(free[0])); err == nil {
			break
		}
	}
	return l, err
}

// URL is the URL to which the client connects.
func (r *Relay) URL() string { return "nats://" + r.address }

// Close ends all connections and goroutines of the relay, and waits for their end.
func (r *Relay) Close() {
	r.mu.Lock()
	_ = r.listener.Close()
	r.closed = true
	r.mu.Unlock()
	r.Heal()
	r.ways.Wait()
}

func (r *Relay) accept(l net.Listener) {
	for {
		client, err := l.Accept()
		if err != nil {
			return
		}
		server, err := r.network.DialContext(context.Background(), "tcp", r.server)
		if err != nil {
			_ = client.Close()
			continue
		}
		r.join(&link{client, server, make(chan struct{})}, l)
	}
}

func (r *Relay) join(k *link, by net.Listener) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.links = append(r.links, k)
	if r.closed || by != r.listener || r.mode == refusing {
		r.drop(false)
	}
	r.ways.Go(func() { r.pass(k, k.server, k.client, false) })
	r.ways.Go(func() { r.pass(k, k.client, k.server, true) })
}

// drop ends all connections, normally or by a reset, which loses the bytes on their way. It is
// called under the lock.
func (r *Relay) drop(reset bool) {
	for _, k := range r.links {
		close(k.gone)
		for _, c := range []net.Conn{k.client, k.server} {
			if tcp, ok := c.(*net.TCPConn); ok && reset {
				_ = tcp.SetLinger(0)
			}
			_ = c.Close()
		}
	}
	r.links = nil
}

// pass passes bytes in one direction of a connection. When the sender has closed its side and all
// delayed bytes have arrived, pass ends both directions.
func (r *Relay) pass(k *link, to io.WriteCloser, from io.ReadCloser, answers bool) {
	defer func() {
		_ = to.Close()
		_ = from.Close()
	}()
	q := newQueue(to, k.gone)
	defer q.end()
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		if n > 0 {
			if passes, late := r.lets(answers); passes {
				q.put(buf[:n], late)
			}
		}
		if err != nil {
			return
		}
	}
}
