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
	site site
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

func newGate(s site) *gate {
	g := &gate{tb: s.tb, site: s, held: make(chan *letter, 100)}
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
		c, err := g.site.dial(ctx, network, address)
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
	if !closed {
		c.send(l)
	}
	c.mu.Unlock()
	if closed {
		c.reading.take() // the sender's last Read has ended, so it cannot take the answer
		defer c.reading.pass()
		c.send(l)
		c.drain()
	}
}

// send writes the request, whatever the sender's deadline.
func (c *gated) send(l *letter) {
	c.gate.tb.Helper()
	_ = c.Conn.SetWriteDeadline(time.Time{})
	if _, err := c.Conn.Write(l.bytes); err != nil && !c.gate.kills {
		c.gate.tb.Error(err)
	}
	c.letter = nil
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

// drain reads the answer and hangs up. The caller has the turn to read.
func (c *gated) drain() {
	c.gate.tb.Helper()
	_ = c.Conn.SetReadDeadline(time.Now().Add(left()))
	var size [4]byte
	if _, err := io.ReadFull(c.Conn, size[:]); err != nil && !c.gate.kills {
		c.gate.tb.Errorf("no answer to what was delivered: %v", err)
	}
	_, _ = io.CopyN(io.Discard, c.Conn, int64(binary.BigEndian.Uint32(size[:])))
	_ = c.Conn.Close()
}
