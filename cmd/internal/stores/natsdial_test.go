package stores

import (
	"errors"
	"net"
	"os"
	"syscall"
	"testing"
)

// broken is a connection whose write fails after some bytes.
type broken struct {
	net.Conn
	err  error
	sent []byte
}

func (b *broken) Write(p []byte) (int, error) {
	b.sent = append(b.sent, p[:1]...)
	return 1, b.err
}

// TestGreeting: an error of the first writes is ignored, so that the client reads the server's
// message. Nothing may follow a partial write.
func TestGreeting(t *testing.T) {
	wire := &broken{err: syscall.EPIPE}
	g := &greeting{Conn: wire}
	for i := range firstWrites + 1 {
		n, err := g.Write([]byte("CONNECT"))
		first := i < firstWrites
		if first != (err == nil && n == 7) {
			t.Errorf("write %d returned %d, %v", i, n, err)
		}
		if !first && !errors.Is(err, syscall.EPIPE) {
			t.Errorf("write %d lost its cause: %v", i, err)
		}
	}
	if string(wire.sent) != "C" {
		t.Errorf("%q was sent after a failed write", wire.sent)
	}
	slow := &greeting{Conn: &broken{err: os.ErrDeadlineExceeded}}
	if _, err := slow.Write([]byte("CONNECT")); err == nil {
		t.Error("a write that took too long counts as sent")
	}
}
