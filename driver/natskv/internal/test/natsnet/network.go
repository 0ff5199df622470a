// Package natsnet is a network within the process for the tests of natskv and of its internal
// packages. It has proxies that can be cut, connections, servers that a test plays, and virtual
// time. Module natstest has real servers. Only tests import it.
package natsnet

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/url"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/tenure-go/tenure/internal/test/wait"
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

// Play returns the URL of a server that the test plays. For each message that a client publishes,
// answer is called in a goroutine of its own. It returns the answer, nil for none.
func Play(t testing.TB, answer func(*nats.Msg) []byte) (url string) {
	t.Helper()
	address := Inside.Address()
	var ended sync.WaitGroup
	t.Cleanup(ended.Wait)
	Inside.Put(t, address, func() (net.Conn, error) {
		theirs, ours := net.Pipe()
		t.Cleanup(func() { _ = ours.Close() })
		p := &played{conn: ours, answer: answer, ids: map[string]string{}}
		ended.Go(p.serve)
		return theirs, nil
	})
	return "nats://" + address
}

// played is one connection to a server that a test plays.
type played struct {
	conn   net.Conn
	answer func(*nats.Msg) []byte

	mu  sync.Mutex
	ids map[string]string // of subscriptions, by their subjects
}

// serve ends with the connection.
func (p *played) serve() {
	defer func() { _ = p.conn.Close() }()
	go p.write(`INFO {"server_id":"played","version":"2.15.2","headers":true,"max_payload":1048576}` + "\r\n")
	lines := bufio.NewReader(p.conn)
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			return
		}
		words := strings.Fields(line)
		switch words[0] {
		case "PING":
			go p.write("PONG\r\n")
		case "SUB":
			p.mu.Lock()
			p.ids[strings.TrimSuffix(words[1], "*")] = words[len(words)-1]
			p.mu.Unlock()
		case "PUB", "HPUB":
			m, err := message(words, lines)
			if err != nil {
				return
			}
			go p.respond(m)
		}
	}
}

// message reads the rest of a message.
func message(words []string, from *bufio.Reader) (*nats.Msg, error) {
	size, err := strconv.Atoi(words[len(words)-1])
	if err != nil {
		return nil, err
	}
	body := make([]byte, size+len("\r\n"))
	if _, err := io.ReadFull(from, body); err != nil {
		return nil, err
	}
	m := nats.NewMsg(words[1])
	m.Data = body[:size]
	sizes := 1
	if words[0] == "HPUB" {
		sizes = 2
		header, err := strconv.Atoi(words[len(words)-2])
		if err != nil {
			return nil, err
		}
		if m.Header, err = nats.DecodeHeadersMsg(m.Data[:header]); err != nil {
			return nil, err
		}
		m.Data = m.Data[header:]
	}
	if len(words) > 2+sizes {
		m.Reply = words[2]
	}
	return m, nil
}

// respond sends an answer to the subscription for it.
func (p *played) respond(m *nats.Msg) {
	text := p.answer(m)
	if text == nil || m.Reply == "" {
		return
	}
	p.mu.Lock()
	id, ok := p.ids[m.Reply]
	if !ok {
		id = p.ids[m.Reply[:strings.LastIndexByte(m.Reply, '.')+1]]
	}
	p.mu.Unlock()
	p.write(fmt.Sprintf("MSG %s %s %d\r\n%s\r\n", m.Reply, id, len(text), text))
}

// write sends one message. It fails only without a connection.
func (p *played) write(text string) { _, _ = io.WriteString(p.conn, text) }
