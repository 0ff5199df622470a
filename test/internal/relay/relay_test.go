package relay

import (
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tenure-go/tenure/internal/pipenet"
)

// stage is a relay before a server, on a network of pipes.
type stage struct {
	*Relay
	network *pipenet.Network
	server  net.Listener
}

// bubble runs a test in virtual time.
func bubble(t *testing.T, test func(*testing.T, *stage)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := &stage{network: new(pipenet.Network)}
		s.server = must(s.network.Listen("tcp", ""))
		s.Relay = must(Over(s.network, "", s.server.Addr().String()))
		defer s.Relay.Close()
		defer s.server.Close()
		test(t, s)
	})
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// echo is a server that sends back its input.
func echo(l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		go io.Copy(c, c)
	}
}

func (s *stage) dial(t *testing.T) net.Conn {
	t.Helper()
	c, err := s.network.DialContext(t.Context(), "tcp", s.address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// receives returns the bytes that come back within the time, or "".
func receives(c net.Conn, d time.Duration) string {
	c.SetReadDeadline(time.Now().Add(d))
	buf := make([]byte, 16)
	n, _ := c.Read(buf)
	return string(buf[:n])
}

func TestModes(t *testing.T) {
	bubble(t, func(t *testing.T, r *stage) {
		go echo(r.server)
		c := r.dial(t)
		say := func(c net.Conn, s, want, why string) {
			t.Helper()
			c.Write([]byte(s))
			if got := receives(c, time.Hour); got != want {
				t.Errorf("after %q: received %q, want %q: %s", s, got, want, why)
			}
		}
		say(c, "a", "a", "it passes")
		r.Hold()
		say(c, "b", "", "it is held")
		r.Release()
		say(c, "", "b", "what was held arrives late")
		r.Blackhole()
		say(c, "c", "", "it is swallowed, and the connection stays")
		r.Heal()
		if n, err := c.Read(make([]byte, 1)); n != 0 || err == nil {
			t.Error("a connection with a gap lives on")
		}
		c = r.dial(t)
		say(c, "d", "d", "new connections pass")
		r.Mute()
		say(c, "e", "", "the answer is swallowed")
	})
}

func TestDelay(t *testing.T) {
	const late = time.Minute
	bubble(t, func(t *testing.T, r *stage) {
		go echo(r.server)
		c := r.dial(t)
		r.Delay(late)
		began := time.Now()
		c.Write([]byte("a"))
		if got := receives(c, time.Hour); got != "a" || time.Since(began) != 2*late {
			t.Errorf("%q came back after %v", got, time.Since(began))
		}
		c.Write([]byte("b"))
		time.Sleep(late / 10)
		r.Release()
		c.Write([]byte("c"))
		both := make([]byte, 2)
		c.SetReadDeadline(time.Now().Add(time.Hour))
		if _, err := io.ReadFull(c, both); err != nil || string(both) != "bc" {
			t.Errorf("%q came back, %v: what is not late overtook what is", both, err)
		}
	})
}

// The bytes of a client arrive, although it has hung up since.
func TestDelayAfterTheClientHangsUp(t *testing.T) {
	bubble(t, func(t *testing.T, r *stage) {
		r.Delay(time.Minute)
		c := r.dial(t)
		server, err := r.server.Accept()
		if err != nil {
			t.Fatal(err)
		}
		defer server.Close()
		c.Write([]byte("a"))
		c.Close()
		if got := receives(server, time.Hour); got != "a" {
			t.Errorf("%q arrived", got)
		}
	})
}
