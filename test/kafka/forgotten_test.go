package kafka

import (
	"context"
	"encoding/binary"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tenure-go/tenure/driver/kafkalog"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// wires are connections. Connections that carry writes can be cut silently, as by a firewall.
type wires struct {
	network   dialing
	mu        sync.Mutex
	all       []*forgettable
	swallowed atomic.Int64 // the number of swallowed writes
}

type forgettable struct {
	net.Conn
	wires     *wires
	mu        sync.Mutex
	writes    bool // it carries writes
	forgotten bool
}

func (w *wires) dial(ctx context.Context, network, address string) (net.Conn, error) {
	c, err := w.network(ctx, network, address)
	if err != nil {
		return nil, err
	}
	f := &forgettable{Conn: c, wires: w}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.all = append(w.all, f)
	return f, nil
}

func (w *wires) forget() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, f := range w.all {
		f.mu.Lock()
		f.forgotten = f.writes
		f.mu.Unlock()
	}
}

// Write swallows bytes of a connection that was cut. A request begins with its length and its kind.
func (f *forgettable) Write(p []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(p) > 6 && kmsg.Key(binary.BigEndian.Uint16(p[4:])) == kmsg.Produce {
		f.writes = true
	}
	if f.forgotten {
		f.wires.swallowed.Add(1)
		return len(p), nil
	}
	return f.Conn.Write(p)
}

// TestForgottenConnection: when a caller gives up a write, the write's connection is closed.
// Otherwise later writes would wait behind it until the store's timeout.
func TestForgottenConnection(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, c *cluster) {
		w := wires{network: c.dial}
		s := c.open(c.direct(kgo.Dialer(w.dial)), kafkalog.WithTimeout(time.Minute))
		v := create(t, s, "key", "first")
		w.forget()
		ctx, giveUp := context.WithCancel(t.Context())
		ended := aside(func() error {
			_, err := s.CompareAndSwap(ctx, "key", v, []byte("lost"))
			return err
		})
		eventually(t, "a write into the void", func() bool { return w.swallowed.Load() > 0 })
		giveUp()
		if err := <-ended; outcome(err) != "unknown" {
			t.Errorf("a write into the void: %v", err)
		}
		began := time.Now()
		c.insist(s, "key", v, patience)
		if took := time.Since(began); took > 15*time.Second {
			t.Errorf("the next write takes %v", took)
		}
	})
}
