package pipenet

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
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
