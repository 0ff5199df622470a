// Package natsnet is a network within the process for the tests of natskv and of its internal
// packages. It has proxies that can be cut, connections, servers that a test plays, and virtual
// time. Module natstest has real servers. Only tests import it.
package natsnet

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/url"
	"sync"
	"testing"

	"github.com/nats-io/nats.go"
)

// Inside is the network within this process, on which servers and proxies have addresses.
var Inside = &Network{at: map[string]dialing{}}

type dialing = func() (net.Conn, error)

// Network leads from addresses to servers.
type Network struct {
	mu   sync.Mutex
	last int // the last port given
	at   map[string]dialing
}

// Address returns an address that is not in use.
func (n *Network) Address() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.last++
	return fmt.Sprintf("10.0.0.%d:%d", 1+n.last/50_000, 10_000+n.last%50_000)
}

// Put makes an address lead there until the test is over.
func (n *Network) Put(t testing.TB, address string, to dialing) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.at[address] = to
	t.Cleanup(func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		delete(n.at, address)
	})
}

// Dial reaches addresses on this network and on the machine itself.
func (n *Network) Dial(over, address string) (net.Conn, error) {
	n.mu.Lock()
	to, known := n.at[address]
	n.mu.Unlock()
	switch {
	case known:
		return to()
	case isLoopback(address):
		return net.Dial(over, address)
	}
	return nil, fmt.Errorf("no server is at %s", address)
}

func isLoopback(address string) bool {
	host, _, _ := net.SplitHostPort(address)
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}

// Host returns the host and port of a URL.
func Host(t testing.TB, text string) string {
	t.Helper()
	u, err := url.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return u.Host
}

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
	p := &Proxy{to: func() (net.Conn, error) { return Inside.Dial("tcp", server) }}
	t.Cleanup(p.Drop)
	if isLoopback(server) {
		p.listen(t)
		return p
	}
	p.address = Inside.Address()
	Inside.Put(t, p.address, func() (net.Conn, error) {
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
