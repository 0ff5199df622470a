//go:build integration

package relay

import (
	"errors"
	"io"
	"net"
	"syscall"
	"testing"
)

// TestCutOfSockets: only sockets can be reset, and only their ports can be taken by others.
func TestCutOfSockets(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go echo(l)
	r, err := New("tcp://" + l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	c := dial(t, r)
	speak(t, c, "a")
	r.Cut()
	if _, err := c.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("the connection ended with %v, not by a reset", err)
	}
	if _, err := net.Dial("tcp", r.address); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("a new connection: %v, not refused", err)
	}
	if err := r.Restore(); err != nil {
		t.Fatal(err)
	}
	speak(t, dial(t, r), "b")
}

func dial(t *testing.T, r *Relay) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", r.address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// speak requires that the bytes come back.
func speak(t *testing.T, c net.Conn, sent string) {
	t.Helper()
	if _, err := io.WriteString(c, sent); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, len(sent))
	if _, err := io.ReadFull(c, got); err != nil || string(got) != sent {
		t.Fatalf("%q came back after %q, %v", got, sent, err)
	}
}
