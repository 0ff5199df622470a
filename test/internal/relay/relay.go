// Package relay stands between a client and a server and takes away what passes, as networks do.
package relay

import (
	"io"
	"net"
	"net/url"
	"sync"
)

// Relay passes TCP connections on to a server.
type Relay struct {
	listener net.Listener
	server   string
	ways     sync.WaitGroup

	mu      sync.Mutex
	mode    mode
	changed chan struct{} // closed at the next change of mode
	conns   []net.Conn
	closed  bool
}

// New relays to the server of a URL.
func New(serverURL string) (*Relay, error) {
	address, err := url.Parse(serverURL)
	if err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	r := &Relay{listener: l, server: address.Host, changed: make(chan struct{})}
	r.ways.Go(r.accept)
	return r, nil
}

// URL is where the client connects.
func (r *Relay) URL() string { return "nats://" + r.listener.Addr().String() }

// Close ends everything and waits for it.
func (r *Relay) Close() {
	_ = r.listener.Close()
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	r.Heal()
	r.ways.Wait()
}

func (r *Relay) accept() {
	for {
		client, err := r.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", r.server)
		if err != nil {
			_ = client.Close()
			continue
		}
		r.join(client, server)
	}
}

func (r *Relay) join(client, server net.Conn) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.conns = append(r.conns, client, server)
	if r.closed {
		r.drop()
	}
	r.ways.Go(func() { r.pass(server, client, false) })
	r.ways.Go(func() { r.pass(client, server, true) })
}

// drop is called under the lock.
func (r *Relay) drop() {
	for _, c := range r.conns {
		_ = c.Close()
	}
	r.conns = nil
}

// pass is one direction of a connection. It ends with either side.
func (r *Relay) pass(to io.WriteCloser, from io.ReadCloser, answers bool) {
	defer func() {
		_ = to.Close()
		_ = from.Close()
	}()
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		if n > 0 && r.lets(answers) {
			if _, err := to.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}
