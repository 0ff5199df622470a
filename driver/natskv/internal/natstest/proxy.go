package natstest

import (
	"bytes"
	"io"
	"net"
	"strconv"
	"sync"
	"testing"

	"github.com/nats-io/nats.go"
)

// Proxy stands between clients and a server, and can withhold the server's messages.
type Proxy struct {
	address string
	to      dialing

	mu    sync.Mutex
	mute  bool
	drop  []byte        // text of the message to lose; nil: none
	lost  chan struct{} // closed when it is lost
	conns []net.Conn
}

// StartProxy returns a proxy of the server at a URL. It is on a socket if the server is.
func StartProxy(t testing.TB, serverURL string) *Proxy {
	t.Helper()
	server := Host(t, serverURL)
	p := &Proxy{to: func() (net.Conn, error) { return inside.Dial("tcp", server) }}
	t.Cleanup(p.Drop)
	if isLoopback(server) {
		p.listen(t)
		return p
	}
	host, port := inside.address()
	p.address = net.JoinHostPort(host, strconv.Itoa(port))
	inside.put(t, p.address, func() (net.Conn, error) {
		theirs, ours := net.Pipe()
		return theirs, p.join(ours)
	})
	return p
}

func (p *Proxy) listen(t testing.TB) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p.address = l.Addr().String()
	var done sync.WaitGroup
	done.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			_ = p.join(client) // the client sees that its connection ends
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		done.Wait()
	})
}

// URL returns the URL under which clients reach the server through the proxy.
func (p *Proxy) URL() string { return "nats://" + p.address }

// join connects a client with the server.
func (p *Proxy) join(client net.Conn) error {
	server, err := p.to()
	if err != nil {
		_ = client.Close()
		return err
	}
	p.mu.Lock()
	p.conns = append(p.conns, client, server)
	p.mu.Unlock()
	go p.pass(server, client)
	go p.pass(answers{client, p}, server)
	return nil
}

// pass ends with either side.
func (p *Proxy) pass(to io.WriteCloser, from net.Conn) {
	_, _ = io.Copy(struct{ io.Writer }{to}, from)
	_ = to.Close()
	_ = from.Close()
}

// answers is the way from the server to a client.
type answers struct {
	net.Conn
	p *Proxy
}

func (a answers) Write(b []byte) (int, error) {
	if a.p.withholds(b) {
		return len(b), nil
	}
	return a.Conn.Write(b)
}

func (p *Proxy) withholds(b []byte) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.drop != nil && bytes.Contains(b, p.drop) {
		p.drop = nil
		close(p.lost)
		return true
	}
	return p.mute
}

// Lose loses the next message from the server that contains the text, and what the server sends
// together with it. The channel is closed when the message is lost.
func (p *Proxy) Lose(text string) (lost <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.drop, p.lost = []byte(text), make(chan struct{})
	return p.lost
}

// Cut loses all messages from the server until heal is called. Heal also ends the connections,
// because the lost messages left a gap in them.
func (p *Proxy) Cut() (heal func()) {
	p.set(true)
	return func() {
		p.Drop()
		p.set(false)
	}
}

func (p *Proxy) set(mute bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mute = mute
}

// Drop ends all connections.
func (p *Proxy) Drop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.conns {
		_ = c.Close()
	}
	p.conns = nil
}

// Connections returns how many connections there are, of both sides.
func (p *Proxy) Connections() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.conns)
}

// TwoWays returns a connection that knows two ways to one server and uses the first, which can be
// cut.
func TwoWays(t testing.TB, serverURL string) (nc *nats.Conn, first *Proxy) {
	t.Helper()
	first, second := StartProxy(t, serverURL), StartProxy(t, serverURL)
	return Connect(t, first.URL()+","+second.URL(), nats.DontRandomize()), first
}
