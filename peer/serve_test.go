package peer

import (
	"bytes"
	"context"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/drivertest"
	"github.com/tenure-go/tenure/driver/memory"
	"github.com/tenure-go/tenure/internal/pipenet"
	"github.com/tenure-go/tenure/internal/test/able"
	"github.com/tenure-go/tenure/internal/test/wait"
)

// get calls a handler without a server in between.
func get(s *Store, target string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodGet, target, nil)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	s.Handler().ServeHTTP(w, r)
	return w
}

func TestPlainRequests(t *testing.T) {
	s := open(t, wires{}, memory.NewPolled(), nil)
	name, challenge := s.Incarnation(forever), newChallenge()
	answers := func(code int, why, target string, headers ...string) *httptest.ResponseRecorder {
		t.Helper()
		w := get(s, target, headers...)
		if w.Code != code {
			t.Errorf("%s: %d %s, want %d", why, w.Code, w.Body, code)
		}
		return w
	}
	answers(http.StatusNotFound, "without a leader", DefaultPath)
	v := write(t, s, testKey, held(name, 1, 1))
	e, _ := s.Read(t.Context(), testKey)
	for _, path := range []string{DefaultPath, DefaultPath + "?election=" + testKey, "/elsewhere"} {
		w := answers(http.StatusOK, path, path, challengeHeader, text.EncodeToString(challenge))
		if !bytes.Equal(w.Body.Bytes(), e.Value) || w.Header().Get("ETag") != `"`+string(v)+`"` ||
			w.Header().Get("Content-Type") != "application/json" || w.Header().Get("Cache-Control") != "no-store" {
			t.Errorf("%s: %v %s", path, w.Header(), w.Body)
		}
		said := statement{challenge: challenge, key: testKey, version: v, value: e.Value}
		if err := said.check(name, w.Header().Get(proofHeader)); err != nil {
			t.Error(err)
		}
	}
	if w := answers(http.StatusOK, "without a challenge", DefaultPath); w.Header().Get(proofHeader) != "" {
		t.Errorf("without a challenge: %v", w.Header())
	}
	for why, challenge := range map[string]string{
		"short": "AAAA", "padded": text.EncodeToString(challenge) + "=", "no base64": strings.Repeat("!", 43),
		"long": text.EncodeToString(append(newChallenge(), 0)),
	} {
		answers(http.StatusBadRequest, "a challenge that is "+why, DefaultPath, challengeHeader, challenge)
	}
	for method, code := range map[string]int{"HEAD": 200, "POST": 405, "DELETE": 405, "OPTIONS": 405} {
		w := httptest.NewRecorder()
		s.Handler().ServeHTTP(w, httptest.NewRequest(method, DefaultPath, nil))
		if w.Code != code {
			t.Errorf("%s: %d, want %d", method, w.Code, code)
		}
	}
	answers(http.StatusNotFound, "another election", DefaultPath+"?election=payments")
	write(t, s, "payments", held(s.Incarnation(forever), 1, 1))
	if w := answers(http.StatusBadRequest, "several elections", DefaultPath); !strings.Contains(w.Body.String(), "?election=billing") {
		t.Errorf("several elections: %s", w.Body)
	}
	answers(http.StatusOK, "one of several", DefaultPath+"?election=payments")
	write(t, s, testKey, released(name, 1, 2))
	for _, accept := range []string{"", eventStream} {
		answers(http.StatusNotFound, "released", DefaultPath+"?election=billing", "Accept", accept)
	}
}

// asked is a stream that was opened as a browser would.
type asked struct {
	status int
	body   io.Reader
	leave  context.CancelFunc
}

func ask(t *testing.T, on wires, address string) asked {
	t.Helper()
	ctx, leave := context.WithCancel(t.Context())
	req, _ := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+DefaultPath, nil)
	req.Header.Set("Accept", eventStream)
	resp, err := on.client(t).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = resp.Body.Close() })
	return asked{resp.StatusCode, resp.Body, leave}
}

// A stream of a leader that cannot renew continues with heartbeats while the lease is valid, and
// not longer.
func streamEndsWithTheLease(t *testing.T, on wires) {
	s := open(t, on, memory.NewPolled(), nil)
	address := serving(t, on, s)
	began := time.Now()
	valid := 2900 * time.Millisecond // the lease less a margin
	name := s.Incarnation(func(uint64) time.Duration { return time.Until(began.Add(valid)) })
	r := held(name, 1, 1)
	r.Lease = 3 * time.Second
	write(t, s, testKey, r)
	all, err := io.ReadAll(ask(t, on, address).body)
	took := time.Since(began)
	if err != nil || strings.Count(string(all), "data: ") != 1 || !strings.Contains(string(all), heartbeat) {
		t.Errorf("after %v, %v: %q", took, err, all)
	}
	if took < valid || took >= r.Lease {
		t.Errorf("it ended after %v, and the lease was valid for %v", took, valid)
	}
}

func streamsAreBounded(t *testing.T, on wires) {
	s := open(t, on, memory.NewPolled(), func(c *Config) { c.MaxStreams = 2 })
	address := serving(t, on, s)
	write(t, s, testKey, held(s.Incarnation(forever), 1, 1))
	first := ask(t, on, address)
	ask(t, on, address)
	wait.Until(t, "both are counted", func() bool { return s.streams() == 2 })
	if s := ask(t, on, address); s.status != http.StatusServiceUnavailable {
		t.Errorf("one too many: %d", s.status)
	}
	first.leave()
	wait.Until(t, "a place is free again", func() bool { return s.streams() == 1 })
	if s := ask(t, on, address); s.status != http.StatusOK {
		t.Errorf("in the free place: %d", s.status)
	}
}

// The user's own server has limits that are meant for requests. A stream outlives them.
func streamOutlivesTheServersTimeouts(t *testing.T, on wires) {
	const limit = time.Second // long enough for a request
	s := open(t, on, memory.NewPolled(), nil)
	server := on.server(t, s.Handler())
	server.Config.WriteTimeout, server.Config.ReadTimeout = limit, limit
	server.Start()
	name := s.Incarnation(forever)
	write(t, s, testKey, held(name, 1, 1))
	stream := ask(t, on, server.Listener.Addr().String())
	for n := uint64(2); n < 6; n++ {
		time.Sleep(limit * 6 / 10)
		write(t, s, testKey, held(name, 1, n))
	}
	write(t, s, testKey, released(name, 1, 6))
	all, err := io.ReadAll(stream.body)
	if err != nil || !strings.Contains(string(all), `"released":true`) {
		t.Errorf("%v: %q", err, all)
	}
	_ = s.Close()
}

// A server that can neither flush nor set deadlines answers with the present state.
func TestServerThatCannotStream(t *testing.T) {
	s := open(t, wires{}, memory.NewPolled(), nil)
	write(t, s, testKey, held(s.Incarnation(forever), 1, 1))
	w := httptest.NewRecorder()
	r := httptest.NewRequest(http.MethodGet, DefaultPath, nil)
	r.Header.Set("Accept", eventStream)
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.Handler().ServeHTTP(struct{ http.ResponseWriter }{w}, r)
	}()
	select {
	case <-done:
	case <-wait.Context(t).Done():
		t.Fatal("it does not end")
	}
	if strings.Count(w.Body.String(), "data: ") != 1 {
		t.Errorf("%q", w.Body)
	}
}

func TestConfig(t *testing.T) {
	ok := Config{Networks: loopback}
	tests := []struct {
		name, want string
		store      driver.Store
		change     func(*Config)
	}{
		{"sound", "", memory.NewPolled(), func(*Config) {}},
		{"no store", "store is nil", nil, func(*Config) {}},
		{"pushes already", "needs no peers", memory.New(), func(*Config) {}},
		{"no networks", "Networks is empty", memory.NewPolled(), func(c *Config) { c.Networks = nil }},
		{"zero network", "invalid prefix", memory.NewPolled(), func(c *Config) { c.Networks = []netip.Prefix{{}} }},
		{"path", "Path is", memory.NewPolled(), func(c *Config) { c.Path = "health" }},
		{"pattern", "Path is", memory.NewPolled(), func(c *Config) { c.Path = "/{x}" }},
		{"timeout", "Timeout is", memory.NewPolled(), func(c *Config) { c.Timeout = -1 }},
		{"retry", "Retry is", memory.NewPolled(), func(c *Config) { c.Retry = -1 }},
		{"streams", "MaxStreams is", memory.NewPolled(), func(c *Config) { c.MaxStreams = -1 }},
		{"streams of an address", "MaxStreamsPerAddress is", memory.NewPolled(), func(c *Config) { c.MaxStreamsPerAddress = -1 }},
		{"connections", "MaxConnections is", memory.NewPolled(), func(c *Config) { c.MaxConnections = -1 }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			cfg := ok
			tt.change(&cfg)
			_, err := New(tt.store, cfg)
			if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("%v, want %q", err, tt.want)
			}
		})
	}
}

// polled is a store that hides its pushes.
type polled struct{ driver.Store }

func (p polled) Abilities() driver.Abilities {
	a := driver.AbilitiesOf(p.Store)
	a.Watcher, a.Peers = nil, nil
	return a
}

func TestAbilitiesPassThrough(t *testing.T) {
	inner := polled{able.Store{Store: memory.NewPolled()}}
	for name, inner := range map[string]driver.Store{"all": inner, "none": struct{ driver.Store }{memory.NewPolled()}} {
		outer := open(t, wires{}, inner, nil)
		got, want := able.Answers(t.Context(), outer), able.Answers(t.Context(), inner)
		for _, own := range []string{"Watcher", "Peers"} {
			if _, ok := got[own]; !ok {
				t.Errorf("%s: it is no %s", name, own)
			}
			delete(got, own)
			delete(want, own)
		}
		if !maps.Equal(got, want) {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
	s := open(t, wires{}, memory.NewPolled(), nil)
	if _, err := s.Watch(t.Context(), "", func(driver.Entry) {}); err == nil {
		t.Error("a key that the store cannot hold is watched")
	}
	seen := map[string]bool{}
	for range 100 {
		name := s.Incarnation(forever)
		if _, ok := publicKey(name); !ok || len(name) > 64 || seen[name] {
			t.Errorf("incarnation %q", name)
		}
		seen[name] = true
	}
}

// TestConformance runs the kit's cases for stores. Its cases for watches write values that are not
// records and belong to no leader, while a leader pushes only its own records. push_test.go has
// similar cases for these. So the kit does not see a driver.Watcher here.
func TestConformance(t *testing.T) {
	drivertest.RunInBubbles(t, func(t testing.TB) drivertest.Harness {
		cells := memory.NewPolled()
		a, b := open(t, wires{}, cells, nil), open(t, wires{}, cells, nil)
		return drivertest.Harness{
			Store: polled{a}, Peer: polled{b},
			Delete: func(_ context.Context, key string) error { cells.Delete(key); return nil },
			Purge:  func(_ context.Context, key string) error { cells.Purge(key); return nil },
		}
	})
}

func TestServeReportsItsListener(t *testing.T) {
	s := open(t, wires{}, memory.NewPolled(), nil)
	l, err := new(pipenet.Network).Listen("tcp", "")
	if err != nil {
		t.Fatal(err)
	}
	_ = l.Close()
	if err := s.Serve(l); err == nil {
		t.Error("a closed listener is served")
	}
}

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
		write(t, s, testKey, held(s.Incarnation(forever), 1, 1))
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

// The number of all connections is bounded, and one address may have half of them.
func TestConnectionsByAddress(t *testing.T) {
	c := &connLimiter{most: 5}
	admits := func(from string, want bool) {
		t.Helper()
		if c.enter(from) != want {
			t.Errorf("a connection from %s: want %v, with %+v", from, want, c.open)
		}
	}
	for _, want := range []bool{true, true, true, false} {
		admits("a", want)
	}
	admits("b", true)
	admits("c", true)
	admits("d", false)
	c.left("a")
	admits("d", true)
	admits("e", false)
}

// A server may close a connection twice.
func closedConnectionCountsOnce(t *testing.T, on wires) {
	c := &connLimiter{Listener: on.free(t), most: 2}
	for range 2 {
		go func() { _, _ = on.dial(t.Context(), "tcp", c.Addr().String()) }()
	}
	first, err := c.Accept()
	if err != nil {
		t.Fatal(err)
	}
	_ = first.Close()
	_ = first.Close()
	if _, err := c.Accept(); err != nil || c.open.all != 1 {
		t.Errorf("%d connections are counted, %v", c.open.all, err)
	}
}

// Idle connections once had no limit at all.
func connectionsAreBounded(t *testing.T, on wires) {
	said := make(reports, 1000)
	s := open(t, on, memory.NewPolled(), func(c *Config) { c.MaxConnections, c.OnError = 8, said.note })
	address := serving(t, on, s)
	write(t, s, testKey, held(s.Incarnation(forever), 1, 1))
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
