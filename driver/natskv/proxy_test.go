package natskv

import (
	"io"
	"net"
	"net/url"
	"sync"
	"testing"
)

// proxy stands between clients and a server, and can take away what the server says.
type proxy struct {
	listener net.Listener
	server   string

	mu    sync.Mutex
	mute  bool
	conns []net.Conn
}

func startProxy(t testing.TB, serverURL string) *proxy {
	t.Helper()
	address, err := url.Parse(serverURL)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{listener: l, server: address.Host}
	var done sync.WaitGroup
	done.Go(p.serve)
	t.Cleanup(func() {
		_ = l.Close()
		p.drop()
		done.Wait()
	})
	return p
}

func (p *proxy) url() string { return "nats://" + p.listener.Addr().String() }

func (p *proxy) serve() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", p.server)
		if err != nil {
			_ = client.Close()
			continue
		}
		p.mu.Lock()
		p.conns = append(p.conns, client, server)
		p.mu.Unlock()
		go p.pass(server, client)
		go p.pass(answers{client, p}, server)
	}
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

// accepted is how many connections there are, of both sides.
func (p *proxy) accepted() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.conns)
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
