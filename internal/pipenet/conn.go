package pipenet

import (
	"io"
	"net"
	"os"
	"sync"
	"time"
)

// room is how many bytes a direction of a connection holds, like the buffers of a socket. Without
// it, TLS peers that both write at once block each other: one its handshake, the other an alert.
const room = 4 << 10

// conn is one end of a connection. It is like net.Pipe, except that it holds bytes that are sent
// and not yet read, also after the sender has closed it. One goroutine at a time may write.
type conn struct {
	both        *sync.Mutex // of both ends
	changed     *sync.Cond
	other       *conn
	in          []byte // sent by the other end, and not yet read
	closed      bool
	read, write deadline
}

// deadline is a time after which calls fail.
type deadline struct {
	timer  *time.Timer // nil without one
	passed bool
}

// pipe returns the two ends of a new connection.
func pipe() (one, other net.Conn) {
	mu := new(sync.Mutex)
	a := &conn{both: mu, changed: sync.NewCond(mu)}
	b := &conn{both: mu, changed: a.changed, other: a}
	a.other = b
	return a, b
}

func (c *conn) Read(b []byte) (int, error) {
	c.both.Lock()
	defer c.both.Unlock()
	for {
		switch {
		case c.closed:
			return 0, io.ErrClosedPipe
		case c.read.passed:
			return 0, os.ErrDeadlineExceeded
		case len(c.in) > 0 || len(b) == 0:
			n := copy(b, c.in)
			c.in = c.in[n:]
			c.changed.Broadcast()
			return n, nil
		case c.other.closed:
			return 0, io.EOF
		}
		c.changed.Wait()
	}
}

func (c *conn) Write(b []byte) (n int, err error) {
	c.both.Lock()
	defer c.both.Unlock()
	for {
		switch {
		case c.closed || c.other.closed:
			return n, io.ErrClosedPipe
		case c.write.passed:
			return n, os.ErrDeadlineExceeded
		}
		fits := min(len(b)-n, room-len(c.other.in))
		c.other.in = append(c.other.in, b[n:n+fits]...)
		n += fits
		c.changed.Broadcast()
		if n == len(b) {
			return n, nil
		}
		c.changed.Wait()
	}
}

func (c *conn) Close() error {
	c.both.Lock()
	defer c.both.Unlock()
	c.closed = true
	c.changed.Broadcast()
	return nil
}

func (c *conn) LocalAddr() net.Addr  { return address("pipe") }
func (c *conn) RemoteAddr() net.Addr { return address("pipe") }

func (c *conn) SetDeadline(t time.Time) error {
	_ = c.SetReadDeadline(t)
	return c.SetWriteDeadline(t)
}

func (c *conn) SetReadDeadline(t time.Time) error  { return c.limit(&c.read, t) }
func (c *conn) SetWriteDeadline(t time.Time) error { return c.limit(&c.write, t) }

func (c *conn) limit(d *deadline, t time.Time) error {
	c.both.Lock()
	defer c.both.Unlock()
	if d.timer != nil {
		d.timer.Stop()
	}
	*d = deadline{}
	switch left := time.Until(t); {
	case t.IsZero():
	case left <= 0:
		d.passed = true
		c.changed.Broadcast()
	default:
		var timer *time.Timer
		timer = time.AfterFunc(left, func() {
			c.both.Lock()
			defer c.both.Unlock()
			if d.timer == timer { // and not a later one
				d.passed = true
				c.changed.Broadcast()
			}
		})
		d.timer = timer
	}
	return nil
}
