// Package pipenet is a network within the process, for tests. Its connections are pipes with small
// buffers, so servers and clients on it work in the bubbles of testing/synctest, where sockets
// would stop the clock.
package pipenet

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"sync"
	"syscall"
)

// Network is a network of listeners. The zero Network is ready for use. A Network for a bubble must
// be made in that bubble. Several goroutines may call its methods.
type Network struct {
	mu        sync.Mutex
	last      int // the last port given
	listeners map[string]*listener
}

// address is the address of a listener.
type address string

func (address) Network() string  { return "tcp" }
func (a address) String() string { return string(a) }

// listener gives connections to callers of Accept, one by one.
type listener struct {
	on      *Network
	address address
	waiting chan net.Conn
	closed  chan struct{}
	close   sync.Once
}

// Listen listens on an address, as net.Listen does. For an empty address it takes a free one.
func (n *Network) Listen(_, at string) (net.Listener, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if at == "" {
		n.last++
		at = fmt.Sprintf("127.0.0.1:%d", 10_000+n.last)
	}
	if n.listeners[at] != nil {
		return nil, fmt.Errorf("listen on %s: %w", at, syscall.EADDRINUSE)
	}
	if n.listeners == nil {
		n.listeners = map[string]*listener{}
	}
	l := &listener{
		on: n, address: address(at), waiting: make(chan net.Conn), closed: make(chan struct{}),
	}
	n.listeners[at] = l
	return l, nil
}

// DialContext connects to a listener, as net.Dialer does. It waits until the connection is
// accepted. It returns an error if no listener has the address, and when the context ends.
func (n *Network) DialContext(ctx context.Context, _, at string) (net.Conn, error) {
	n.mu.Lock()
	l := n.listeners[at]
	n.mu.Unlock()
	refused := &net.OpError{Op: "dial", Net: "tcp", Addr: address(at), Err: syscall.ECONNREFUSED}
	if l == nil {
		return nil, refused
	}
	here, there := pipe()
	select {
	case l.waiting <- there:
		return here, nil
	case <-l.closed:
		return nil, refused
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// Client returns a new HTTP client for the servers on this network, with its own connections.
func (n *Network) Client() *http.Client {
	return &http.Client{Transport: &http.Transport{DialContext: n.DialContext}}
}

func (l *listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.waiting:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close closes the listener. Accepted connections stay open.
func (l *listener) Close() error {
	l.close.Do(func() {
		close(l.closed)
		l.on.mu.Lock()
		defer l.on.mu.Unlock()
		delete(l.on.listeners, string(l.address))
	})
	return nil
}

func (l *listener) Addr() net.Addr { return l.address }
