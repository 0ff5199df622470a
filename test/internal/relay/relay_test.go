package relay

import (
	"io"
	"net"
	"testing"
	"time"
)

// echo is a server that says what it hears.
func echo(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go io.Copy(c, c)
		}
	}()
	return "tcp://" + l.Addr().String()
}

func dial(t *testing.T, r *Relay) net.Conn {
	c, err := net.Dial("tcp", r.listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// hears reports what comes back within the time; "" is nothing.
func hears(c net.Conn, d time.Duration) string {
	c.SetReadDeadline(time.Now().Add(d))
	buf := make([]byte, 16)
	n, _ := c.Read(buf)
	return string(buf[:n])
}

func TestModes(t *testing.T) {
	const soon, never = 10 * time.Second, 50 * time.Millisecond
	r, err := New(echo(t))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	c := dial(t, r)
	say := func(c net.Conn, s string, patience time.Duration, want, why string) {
		t.Helper()
		c.Write([]byte(s))
		if got := hears(c, patience); got != want {
			t.Errorf("after %q: heard %q, want %q: %s", s, got, want, why)
		}
	}
	say(c, "a", soon, "a", "it passes")
	r.Hold()
	say(c, "b", never, "", "it is held")
	r.Release()
	say(c, "", soon, "b", "what was held arrives late")
	r.Blackhole()
	say(c, "c", never, "", "it is swallowed, and the connection stays")
	r.Heal()
	if n, err := c.Read(make([]byte, 1)); n != 0 || err == nil {
		t.Error("a connection with a gap lives on")
	}
	say(dial(t, r), "d", soon, "d", "new connections pass")
}
