// Package relay passes bytes between a client and a server, and loses, holds or delays them as a
// network can.
package relay

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
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
	sent    atomic.Int64 // parcels of the clients

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
	severed        atomic.Bool
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

// Address returns HOST:PORT.
func (r *Relay) Address() string { return r.address }

// Sent returns how often clients have sent bytes so far. That is about once for each request, and
// once for each ping or acknowledgment of a protocol.
func (r *Relay) Sent() int64 { return r.sent.Load() }

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
		r.join(&link{client: client, server: server, gone: make(chan struct{})}, l)
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
			if !answers {
				r.sent.Add(1)
			}
			if passes, late := r.lets(answers); passes && !k.severed.Load() {
				q.put(buf[:n], late)
			}
		}
		if err != nil {
			return
		}
	}
}

// queue delivers bytes in their order, with their delay. It drops bytes that it cannot deliver: the
// closed connection shows that to the sender.
type queue struct {
	to   io.Writer
	gone <-chan struct{} // closed when the connection is: nothing is delivered any more
	busy sync.WaitGroup

	mu      sync.Mutex
	waiting []parcel
}

type parcel struct {
	data []byte
	due  time.Time
}

func newQueue(to io.Writer, gone <-chan struct{}) *queue { return &queue{to: to, gone: gone} }

// put delivers bytes at once if they have no delay and no delayed bytes are before them.
func (q *queue) put(data []byte, late time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if late == 0 && len(q.waiting) == 0 {
		_, _ = q.to.Write(data)
		return
	}
	q.waiting = append(q.waiting, parcel{bytes.Clone(data), time.Now().Add(late)})
	if len(q.waiting) == 1 {
		q.busy.Go(q.deliver)
	}
}

// deliver delivers waiting bytes until none are left.
func (q *queue) deliver() {
	for more := true; more; {
		next := q.first()
		select {
		case <-time.After(time.Until(next.due)):
		case <-q.gone:
			return
		}
		_, _ = q.to.Write(next.data)
		more = q.remove()
	}
}

func (q *queue) first() parcel {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.waiting[0]
}

// remove removes the delivered bytes, and reports whether more are waiting.
func (q *queue) remove() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.waiting = q.waiting[1:]
	return len(q.waiting) > 0
}

// end waits until all bytes are delivered or dropped.
func (q *queue) end() { q.busy.Wait() }

// mode says what happens to bytes.
type mode int

const (
	passing mode = iota
	holding
	swallowing
	muting
	refusing
)

// Blackhole swallows everything in both directions and leaves the connections open, so that neither
// side notices.
func (r *Relay) Blackhole() { r.set(swallowing, 0) }

// Mute swallows the server's bytes: requests are carried out and their answers lost.
func (r *Relay) Mute() { r.set(muting, 0) }

// Hold keeps all bytes in both directions until Release, like a partition that ends before TCP
// gives up.
func (r *Relay) Hold() { r.set(holding, 0) }

// Delay delays all bytes in both directions. Bytes that a client sent before it died or hung up
// arrive late, too. Release ends the delay for later bytes.
func (r *Relay) Delay(by time.Duration) { r.set(passing, by) }

// Release ends a Hold or a Delay.
func (r *Relay) Release() { r.set(passing, 0) }

// Sever swallows from now on all bytes on the present connections, as a firewall does that forgets
// them. New connections pass.
func (r *Relay) Sever() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, k := range r.links {
		k.severed.Store(true)
	}
}

// Heal lets everything pass again, on new connections: swallowed bytes left a gap in the old ones.
func (r *Relay) Heal() {
	r.mu.Lock()
	r.drop(false)
	r.mu.Unlock()
	r.set(passing, 0)
}

// Cut resets all connections and refuses new ones, until Restore.
func (r *Relay) Cut() {
	r.set(refusing, 0)
	r.mu.Lock()
	defer r.mu.Unlock()
	_ = r.listener.Close()
	r.drop(true)
}

// Restore ends a Cut. It fails if another process has taken the port in the meantime.
func (r *Relay) Restore() error {
	l, err := r.network.Listen("tcp", r.address)
	if err != nil {
		return fmt.Errorf("the relay cannot come back: %w", err)
	}
	r.set(passing, 0)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return l.Close()
	}
	r.listener = l
	r.ways.Go(func() { r.accept(l) })
	return nil
}

func (r *Relay) set(m mode, late time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mode, r.late = m, late
	close(r.changed)
	r.changed = make(chan struct{})
}

// lets returns whether bytes in this direction pass, and how late. During a Hold it waits for the
// end.
func (r *Relay) lets(answers bool) (passes bool, late time.Duration) {
	for {
		r.mu.Lock()
		m, late, changed := r.mode, r.late, r.changed
		r.mu.Unlock()
		if m != holding {
			return m == passing || m == muting && !answers, late
		}
		<-changed
	}
}

// Set holds the relays between one client and several servers, by the servers' addresses.
type Set map[string]*Relay

// NewSet starts a relay to each of these hosts and ports.
func NewSet(addresses []string) (Set, error) {
	all := Set{}
	for _, server := range addresses {
		r, err := New("tcp://" + server)
		if err != nil {
			all.Close()
			return nil, err
		}
		all[server] = r
	}
	return all, nil
}

// Via returns the address of the relay for each server.
func (all Set) Via() map[string]string {
	found := map[string]string{}
	for server, r := range all {
		_, found[server], _ = strings.Cut(r.URL(), "//")
	}
	return found
}

// Cut stops all bytes in both directions, and leaves the connections open. The returned function
// ends the cut. If lossy is set, the bytes are lost and the connections end with the cut. Otherwise
// the bytes pass when it ends.
func (all Set) Cut(lossy bool) (end func()) {
	begin, heal := (*Relay).Hold, (*Relay).Release
	if lossy {
		begin, heal = (*Relay).Blackhole, (*Relay).Heal
	}
	all.each(begin)
	return func() { all.each(heal) }
}

// Blackhole does to each relay what it does to one. So do Mute, Hold, Delay, Release, Sever and
// Heal.
func (all Set) Blackhole() { all.each((*Relay).Blackhole) }

// Mute is described at Blackhole.
func (all Set) Mute() { all.each((*Relay).Mute) }

// Hold is described at Blackhole.
func (all Set) Hold() { all.each((*Relay).Hold) }

// Delay is described at Blackhole.
func (all Set) Delay(by time.Duration) { all.each(func(r *Relay) { r.Delay(by) }) }

// Sever is described at Blackhole.
func (all Set) Sever() { all.each((*Relay).Sever) }

// Release is described at Blackhole.
func (all Set) Release() { all.each((*Relay).Release) }

// Heal is described at Blackhole.
func (all Set) Heal() { all.each((*Relay).Heal) }

// Close ends all relays.
func (all Set) Close() { all.each((*Relay).Close) }

func (all Set) each(do func(*Relay)) {
	for _, r := range all {
		do(r)
	}
}
