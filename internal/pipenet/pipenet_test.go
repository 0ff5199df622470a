package pipenet

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

func TestHTTPInABubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := new(Network)
		l, err := n.Listen("tcp", "")
		if err != nil {
			t.Fatal(err)
		}
		slow := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			time.Sleep(time.Hour)
			_, _ = io.WriteString(w, "hello")
		})
		server := &httptest.Server{Listener: l, Config: &http.Server{Handler: slow}}
		server.Start()
		defer server.Close()
		began := time.Now()
		answer, err := n.Client().Get(server.URL)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		if body, err := io.ReadAll(answer.Body); string(body) != "hello" || err != nil || time.Since(began) != time.Hour {
			t.Errorf("after %v: %q, %v", time.Since(began), body, err)
		}
	})
}

func TestAddresses(t *testing.T) {
	n := new(Network)
	if _, err := n.DialContext(t.Context(), "tcp", "localhost:1"); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("without a listener: %v", err)
	}
	l, err := n.Listen("tcp", "localhost:1")
	if err != nil || l.Addr().String() != "localhost:1" {
		t.Fatalf("listens on %v, %v", l.Addr(), err)
	}
	if _, err := n.Listen("tcp", "localhost:1"); !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("twice: %v", err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := n.DialContext(ended, "tcp", "localhost:1"); !errors.Is(err, context.Canceled) {
		t.Errorf("without a call of Accept: %v", err)
	}
	l.Close()
	l.Close()
	if _, err := l.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
	if l, err := n.Listen("tcp", "localhost:1"); err != nil {
		t.Errorf("again: %v", err)
	} else {
		l.Close()
	}
}

// TestConnections: sent bytes wait for their reader, as in the buffers of sockets. The rest is as
// with net.Pipe.
func TestConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := pipe()
		for _, c := range []net.Conn{a, b} { // both, before either reads
			if n, err := io.WriteString(c, "hello"); n != 5 || err != nil {
				t.Errorf("wrote %d bytes, %v", n, err)
			}
		}
		a.Close()
		if got, err := io.ReadAll(b); string(got) != "hello" || err != nil {
			t.Errorf("after the sender's end: %q, %v", got, err)
		}
		if _, err := b.Write([]byte("x")); !errors.Is(err, io.ErrClosedPipe) {
			t.Errorf("a write to a closed end: %v", err)
		}
		if _, err := a.Read(make([]byte, 1)); !errors.Is(err, io.ErrClosedPipe) {
			t.Errorf("a read from an end that is closed: %v", err)
		}
	})
}

// TestConnectionsWait: a writer waits for room and a reader for bytes, until their deadlines.
func TestConnectionsWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := pipe()
		defer a.Close()
		defer b.Close()
		long := make([]byte, 3*room)
		all := make(chan error, 1)
		go func() { _, err := a.Write(long); all <- err }()
		if _, err := io.ReadFull(b, make([]byte, len(long))); err != nil || <-all != nil {
			t.Errorf("a long write: %v", err)
		}
		for _, limit := range []time.Duration{time.Hour, 0} {
			began := time.Now()
			_ = a.SetDeadline(began.Add(-1))
			_ = a.SetDeadline(began.Add(limit)) // replaces the one before
			n, atWrite := a.Write(long)
			_, atRead := a.Read(long)
			if !errors.Is(atWrite, os.ErrDeadlineExceeded) || !errors.Is(atRead, os.ErrDeadlineExceeded) || time.Since(began) != limit {
				t.Errorf("within %v: wrote %d bytes, %v; read: %v, after %v", limit, n, atWrite, atRead, time.Since(began))
			}
		}
		_ = a.SetDeadline(time.Time{})
		_, _ = b.Write([]byte("x"))
		if n, err := a.Read(long); n != 1 || err != nil {
			t.Errorf("without a deadline: %d bytes, %v", n, err)
		}
	})
}
