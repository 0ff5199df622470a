package program

import (
	"fmt"
	"io"
	"net"
	"testing"
	"unicode"

	"github.com/tenure-go/tenure/cmd/internal/test/must"
)

// Hostile is text that changes a terminal in several ways.
const Hostile = "\x1b[31m \x07\r \x7f \u009b31m \u202e \u2066 \u200f \u2028 \U000e0041"

// Harmless checks that a text is not empty and has only printable characters and line ends.
func Harmless(t *testing.T, text string) {
	t.Helper()
	if text == "" {
		t.Error("nothing is written")
	}
	for i, r := range text {
		if r != '\n' && !unicode.IsPrint(r) {
			t.Errorf("%U in %q", r, text[max(0, i-60):min(len(text), i+20)])
			return
		}
	}
}

// Serve listens until the test ends, and serves each connection. It returns its address.
func Serve(t *testing.T, serve func(net.Conn)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must.OK(t, err)
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for c, err := l.Accept(); err == nil; c, err = l.Accept() {
			go serve(c)
		}
	}()
	return l.Addr().String()
}

// Rude starts a NATS server that refuses each client with a text of control characters. It returns
// its address.
func Rude(t *testing.T) string {
	t.Helper()
	return Serve(t, func(c net.Conn) {
		fmt.Fprint(c, `INFO {"server_id":"x","version":"2.12.0","max_payload":1048576,"headers":true}`+"\r\n")
		_, _ = c.Read(make([]byte, 4096))
		fmt.Fprint(c, "-ERR 'no \x1b[31m \u009b31m \u202e \x7f'\r\n")
		_, _ = io.Copy(io.Discard, c)
		_ = c.Close()
	})
}
