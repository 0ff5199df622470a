package servers

import (
	"fmt"
	"io"
	"net"
	"testing"
)

// Rude starts a NATS server that refuses each client with a text of control characters. It returns
// its address.
func Rude(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for c, err := l.Accept(); err == nil; c, err = l.Accept() {
			go func() {
				fmt.Fprint(c, `INFO {"server_id":"x","version":"2.12.0","max_payload":1048576,"headers":true}`+"\r\n")
				_, _ = c.Read(make([]byte, 4096))
				fmt.Fprint(c, "-ERR 'no \x1b[31m \u009b31m \u202e \x7f'\r\n")
				_, _ = io.Copy(io.Discard, c)
				_ = c.Close()
			}()
		}
	}()
	return l.Addr().String()
}
