package natskv

import (
	"io"
	"net"
	"strconv"
	"sync"
	"testing"
)

// proxy stands between clients and a server, and can take away what the server says.
type proxy struct {
	address string
	to      dialing

	mu    sync.Mutex
	mute  bool
	conns []net.Conn
}

// startProxy is on a socket if the server is.
func startProxy(t testing.TB, serverURL string) *proxy {
	t.Helper()
	server := hostOf(t, serverURL)
	p := &proxy{to: func() (net.Conn, error) { return inside.Dial("tcp", server) }}
	t.Cleanup(p.drop)
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

func (p *proxy) listen(t testing.TB) {
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

func (p *proxy) url() string { return "nats://" + p.address }

// join connects a client with the server.
func (p *proxy) join(client net.Conn) error {
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
func (p *proxy) pass(to io.WriteCloser, from net.Conn) {
	_, _ = io.Copy(struct{ io.Writer }{to}, from)
	_ = to.Close()
	_ = from.Close()
}

// answers is the way from the server to a client.
type answers struct {
	net.Conn
	p *proxy
}

func (a answers) Write(b []byte) (int, error) {
	a.p.mu.Lock()
	mute := a.p.mute
	a.p.mu.Unlock()
	if mute {
		return len(b), nil
	}
	return a.Conn.Write(b)
}

// cut loses all that the server says until heal, which also ends the connections: what was lost left a gap in them.
func (p *proxy) cut() (heal func()) {
	p.set(true)
	return func() {
		p.drop()
		p.set(false)
	}
}

func (p *proxy) set(mute bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mute = mute
}

// drop ends all connections.
func (p *proxy) drop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.conns {
		_ = c.Close()
	}
	p.conns = nil
}
