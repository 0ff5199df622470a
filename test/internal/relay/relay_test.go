package relay

import (
	"errors"
	"io"
	"net"
	"syscall"
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
	c, err := net.Dial("tcp", r.address)
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

func TestDelay(t *testing.T) {
	const late = 50 * time.Millisecond
	r, err := New(echo(t))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	c := dial(t, r)
	r.Delay(late)
	began := time.Now()
	c.Write([]byte("a"))
	if got := hears(c, 10*time.Second); got != "a" || time.Since(began) < 2*late {
		t.Errorf("%q came back after %v", got, time.Since(began))
	}
	c.Write([]byte("b"))
	time.Sleep(late / 10)
	r.Release()
	c.Write([]byte("c"))
	both := make([]byte, 2)
	c.SetReadDeadline(time.Now().Add(10 * time.Second))
	if _, err := io.ReadFull(c, both); err != nil || string(both) != "bc" {
		t.Errorf("%q came back, %v: what is not late overtook what is", both, err)
	}
}

// TestDelayOfTheDead: what a client sent arrives, though it has hung up since.
func TestDelayOfTheDead(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	r, err := New("tcp://" + l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	r.Delay(50 * time.Millisecond)
	c := dial(t, r)
	server, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	c.Write([]byte("a"))
	c.Close()
	if got := hears(server, 10*time.Second); got != "a" {
		t.Errorf("%q arrived", got)
	}
}

func TestCut(t *testing.T) {
	r, err := New(echo(t))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	c := dial(t, r)
	c.Write([]byte("a"))
	if got := hears(c, 10*time.Second); got != "a" {
		t.Fatalf("%q came back", got)
	}
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
	c = dial(t, r)
	c.Write([]byte("b"))
	if got := hears(c, 10*time.Second); got != "b" {
		t.Errorf("%q came back after the cut", got)
	}
}
