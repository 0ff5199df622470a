package kafka

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// gate is a network that delays a request of one kind. It delivers the request even if its sender
// has given up and hung up.
type gate struct {
	tb   testing.TB
	dial dialing
	key  atomic.Int32 // of the request to hold; -1 for none
	sent [256]atomic.Int64
	held chan *letter // receives held requests

	delay func(kmsg.Key) time.Duration // of any request, if set
	late  sync.WaitGroup
	kills bool // brokers are killed, so a late request may get no answer
}

// letter is a request in flight.
type letter struct {
	conn  *gated
	bytes []byte
}

func newGate(tb testing.TB, dial dialing) *gate {
	g := &gate{tb: tb, dial: dial, held: make(chan *letter, 100)}
	g.key.Store(-1)
	return g
}

// hold delays the next request of this kind. Its sender believes that it was sent, and waits for
// the answer.
func (g *gate) hold(key kmsg.Key) { g.key.Store(int32(key)) }

// caught waits for the request that is held.
func (g *gate) caught() *letter {
	g.tb.Helper()
	select {
	case l := <-g.held:
		return l
	case <-within(g.tb).Done():
		g.tb.Fatal("no such request was sent")
		return nil
	}
}

func (g *gate) dialer() kgo.Opt {
	return kgo.Dialer(func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := g.dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &gated{Conn: c, gate: g, order: make(turn, 1), reading: make(turn, 1)}, nil
	})
}

// turn is a lock. Unlike a mutex, it can be awaited in virtual time.
type turn chan struct{}

func (t turn) take() { t <- struct{}{} }
func (t turn) pass() { <-t }

// gated is a connection on which a request can be held, with all later requests.
type gated struct {
	net.Conn
	gate *gate

	order   turn // held while a request is delayed
	reading turn // held by the reader
	mu      sync.Mutex
	letter  *letter // in flight
	closed  bool
}

func (c *gated) Write(b []byte) (int, error) {
	if len(b) < 6 {
		return c.Conn.Write(b)
	}
	key := int32(binary.BigEndian.Uint16(b[4:]))
	c.gate.sent[byte(key)].Add(1)
	c.order.take()
	d := time.Duration(0)
	if c.gate.delay != nil {
		d = c.gate.delay(kmsg.Key(key))
	}
	if d == 0 && !c.gate.key.CompareAndSwap(key, -1) {
		defer c.order.pass()
		return c.Conn.Write(b)
	}
	l := &letter{conn: c, bytes: append([]byte{}, b...)}
	c.mu.Lock()
	c.letter = l
	c.mu.Unlock()
	if d == 0 {
		c.gate.held <- l
		return len(b), nil
	}
	c.gate.late.Go(func() {
		time.Sleep(d)
		l.deliver()
	})
	return len(b), nil
}

func (c *gated) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil
	}
	c.closed = true
	if c.letter == nil {
		return c.Conn.Close()
	}
	// The reader stops, and leaves the answer to drain.
	return c.Conn.SetReadDeadline(time.Unix(1, 0))
}

// SetReadDeadline ignores the sender's deadline once it has hung up.
func (c *gated) SetReadDeadline(at time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return net.ErrClosed
	}
	return c.Conn.SetReadDeadline(at)
}

// SetWriteDeadline ignores the sender's deadline for requests in flight: they arrive.
func (c *gated) SetWriteDeadline(at time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed || c.letter != nil {
		return nil
	}
	return c.Conn.SetWriteDeadline(at)
}

// SetDeadline is SetReadDeadline and SetWriteDeadline.
func (c *gated) SetDeadline(at time.Time) error {
	_ = c.SetWriteDeadline(at)
	return c.SetReadDeadline(at)
}

func (c *gated) Read(b []byte) (int, error) {
	c.reading.take()
	defer c.reading.pass()
	c.mu.Lock()
	closed := c.closed
	c.mu.Unlock()
	if closed {
		return 0, net.ErrClosed
	}
	return c.Conn.Read(b)
}

// deliver lets the request arrive. If its sender has hung up, deliver waits for the answer, so that
// the request has been carried out.
func (l *letter) deliver() {
	l.conn.gate.tb.Helper()
	c := l.conn
	defer c.order.pass()
	c.mu.Lock()
	closed := c.closed
	_ = c.Conn.SetWriteDeadline(time.Time{}) // remove the sender's deadline
	if _, err := c.Conn.Write(l.bytes); err != nil && !c.gate.kills {
		c.gate.tb.Error(err)
	}
	c.letter = nil
	c.mu.Unlock()
	if closed {
		c.drain()
	}
}

// abandoned waits until the sender has hung up.
func (l *letter) abandoned() {
	l.conn.gate.tb.Helper()
	eventually(l.conn.gate.tb, "the sender waits on", func() bool {
		l.conn.mu.Lock()
		defer l.conn.mu.Unlock()
		return l.conn.closed
	})
}

// drain reads the answers to all requests, the letter's last, and hangs up.
func (c *gated) drain() {
	c.reading.take()
	defer c.reading.pass()
	_ = c.Conn.SetReadDeadline(time.Now().Add(left()))
	var size [4]byte
	if _, err := io.ReadFull(c.Conn, size[:]); err != nil && !c.gate.kills {
		c.gate.tb.Errorf("no answer to what was delivered: %v", err)
	}
	_, _ = io.CopyN(io.Discard, c.Conn, int64(binary.BigEndian.Uint32(size[:])))
	_ = c.Conn.Close()
}

// cord is the connection of one client to the brokers. It can be cut without a signal to either
// side.
type cord struct {
	dial dialing

	mu        sync.Mutex
	cut       func(address string) bool
	lag       time.Duration
	conns     map[*strand]bool
	swallowed atomic.Int64 // the number of writes that were swallowed
}

// strand is one TCP connection of a cord.
type strand struct {
	net.Conn
	cord    *cord
	address string
	writes  bool // it has carried a write to the log
	dead    bool
}

func newCord(dial dialing) *cord {
	return &cord{dial: dial, conns: map[*strand]bool{}}
}

// Dial is for kgo.Dialer.
func (c *cord) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	if c.is(address) {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	conn, err := c.dial(ctx, network, address)
	if err != nil {
		return nil, err
	}
	s := &strand{Conn: conn, cord: c, address: address}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.conns[s] = true
	return s, nil
}

func (c *cord) is(address string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.cut != nil && c.cut(address)
}

// Cut swallows from now on all bytes to these addresses and from them.
func (c *cord) Cut(what func(address string) bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cut = what
}

// Mend ends the connections that have a gap and lets new ones pass.
func (c *cord) Mend() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for s := range c.conns {
		if c.cut != nil && c.cut(s.address) {
			_ = s.Conn.Close()
			delete(c.conns, s)
		}
	}
	c.cut = nil
}

// Sever swallows from now on all bytes on present connections, as a firewall does that forgets
// them. New connections pass.
func (c *cord) Sever() { c.sever(func(*strand) bool { return true }) }

// SeverWrites is Sever for connections that have carried writes to the log.
func (c *cord) SeverWrites() { c.sever(func(s *strand) bool { return s.writes }) }

func (c *cord) sever(which func(*strand) bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for s := range c.conns {
		s.dead = s.dead || which(s)
	}
}

// swallows reports whether the connection has a gap.
func (s *strand) swallows() bool {
	s.cord.mu.Lock()
	defer s.cord.mu.Unlock()
	return s.dead || s.cord.cut != nil && s.cord.cut(s.address)
}

// Write sends a request, which begins with its length and its kind.
func (s *strand) Write(b []byte) (int, error) {
	if len(b) > 6 && kmsg.Key(binary.BigEndian.Uint16(b[4:])) == kmsg.Produce {
		s.cord.mu.Lock()
		s.writes = true
		s.cord.mu.Unlock()
	}
	if s.swallows() {
		s.cord.swallowed.Add(1)
		return len(b), nil
	}
	return s.Conn.Write(b)
}

func (s *strand) Read(b []byte) (int, error) {
	for {
		n, err := s.Conn.Read(b)
		s.cord.mu.Lock()
		lag := s.cord.lag
		s.cord.mu.Unlock()
		time.Sleep(lag)
		if err != nil || !s.swallows() {
			return n, err
		}
	}
}

func anywhere(string) bool { return true }
