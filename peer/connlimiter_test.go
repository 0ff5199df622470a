package peer

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/tenure-go/tenure/driver/memory"
	"github.com/tenure-go/tenure/internal/test/wait"
)

func TestOriginOf(t *testing.T) {
	for address, want := range map[string]string{
		"192.0.2.7:80":              "192.0.2.7",
		"[::ffff:192.0.2.7]:80":     "192.0.2.7",
		"[2001:db8:1:2:3:4:5:6]:80": "2001:db8:1:2::/64",
		"[fe80::1%eth0]:80":         "fe80::/64",
		"@":                         "@",
		"":                          "",
	} {
		if got := originOf(address); got != want {
			t.Errorf("%s: %s, want %s", address, got, want)
		}
	}
}

// 1,024 streams without a reader once took all places.
func TestOneAddressCannotKeepOthersOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, wires{}, memory.NewPolled(), func(c *Config) { c.MaxStreams = 100 })
		write(t, s, testKey, held(s.Incarnation(), 1, 1))
		ctx, leave := context.WithCancel(t.Context())
		follow := func(from string) *httptest.ResponseRecorder {
			r := httptest.NewRequestWithContext(ctx, http.MethodGet, DefaultPath, nil)
			r.RemoteAddr = from
			r.Header.Set("Accept", eventStream)
			w := httptest.NewRecorder()
			go s.Handler().ServeHTTP(w, r)
			synctest.Wait()
			return w
		}
		refused := 0
		for range 100 {
			if w := follow("192.0.2.1:1"); w.Code == http.StatusServiceUnavailable {
				refused++
				if !strings.Contains(w.Body.String(), "from this address") {
					t.Errorf("the answer is %q", w.Body)
				}
			}
		}
		if refused != 75 || s.streams() != 25 {
			t.Errorf("%d streams of one address, %d were refused", s.streams(), refused)
		}
		follow("[2001:db8::1]:1")
		follow("192.0.2.2:1")
		if s.streams() != 27 {
			t.Errorf("%d streams, of 3 addresses", s.streams())
		}
		leave()
		synctest.Wait()
		if s.streams() != 0 {
			t.Errorf("%d streams are left", s.streams())
		}
	})
}

// visitors is a listener that accepts the connections that a test sends to it.
type visitors chan net.Conn

func (v visitors) Accept() (net.Conn, error) {
	conn, ok := <-v
	if !ok {
		return nil, net.ErrClosed
	}
	return conn, nil
}
func (v visitors) Close() error   { return nil }
func (v visitors) Addr() net.Addr { return &net.TCPAddr{} }

// visitor is a connection from an address.
type visitor struct {
	net.Conn
	from string
}

func (v visitor) RemoteAddr() net.Addr {
	a, err := net.ResolveTCPAddr("tcp", v.from)
	if err != nil {
		panic(err)
	}
	return a
}

// TestCrowd: the number of all connections is bounded, and one address may have half of them.
func TestCrowd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		refusals := 0
		at := make(visitors)
		c := &connLimiter{Listener: at, most: 5, refused: func(err error) {
			if !errors.Is(err, errTooManyConns) {
				t.Error(err)
			}
			refusals++
		}}
		var inside []net.Conn
		go func() {
			for {
				conn, err := c.Accept()
				if err != nil {
					return
				}
				inside = append(inside, conn)
			}
		}()
		come := func(from string) (admitted bool) {
			before := len(inside)
			here, there := net.Pipe()
			at <- visitor{there, from}
			synctest.Wait()
			t.Cleanup(func() { _ = here.Close() })
			return len(inside) > before
		}
		for i, want := range []bool{true, true, true, false, false} {
			if come("192.0.2.1:1") != want {
				t.Errorf("connection %d of one address: want %v", i, want)
			}
		}
		if !come("192.0.2.2:1") || !come("192.0.2.3:1") {
			t.Error("others are kept out")
		}
		if come("192.0.2.4:1") {
			t.Error("there are more than 5")
		}
		if refusals != 3 {
			t.Errorf("%d refusals were reported", refusals)
		}
		_ = inside[0].Close()
		_ = inside[0].Close() // counts once
		if !come("192.0.2.4:1") || come("192.0.2.5:1") {
			t.Error("one place was free")
		}
		close(at)
	})
}

// TestConnectionsAreBounded: idle connections once had no limit at all.
func TestConnectionsAreBounded(t *testing.T) { overPipes(t, connectionsAreBounded) }

func connectionsAreBounded(t *testing.T, on wires) {
	said := make(reports, 1000)
	s := open(t, on, memory.NewPolled(), func(c *Config) { c.MaxConnections, c.OnError = 8, said.note })
	address := serving(t, on, s)
	write(t, s, testKey, held(s.Incarnation(), 1, 1))
	var idle []net.Conn
	dial := func() net.Conn {
		d := on.dial
		if d == nil {
			d = new(net.Dialer).DialContext
		}
		conn, err := d(t.Context(), "tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		return conn
	}
	for range 4 {
		idle = append(idle, dial())
	}
	if _, err := dial().Read(make([]byte, 1)); err == nil {
		t.Error("one too many is talked to")
	}
	said.until(t, errTooManyConns.Error()+": one from "+originOf(idle[0].LocalAddr().String())+" was closed")
	for _, conn := range idle {
		_ = conn.Close()
	}
	wait.Until(t, "there is room again", func() bool {
		resp, err := on.client(t).Get("http://" + address + DefaultPath)
		if err != nil {
			return false
		}
		_ = resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	})
}
