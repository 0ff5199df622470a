package peer

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/memory"
	"github.com/tenure-go/tenure/internal/record"
)

func listen(address string) (net.Listener, error) { return net.Listen("tcp", address) }

// impostor answers in a leader's place, with a leader's keys or without.
type impostor struct {
	t        *testing.T
	keys     *identities
	name     string // what the store says
	requests atomic.Int64
	answer   func(w http.ResponseWriter, challenge []byte)
}

// event signs what a sound leader would, unless changed.
func (i *impostor) event(challenge []byte, place uint64, r record.Record, change func(*statement, *event)) []byte {
	s := statement{challenge: challenge, place: place, key: testKey, version: "7", value: encode(i.t, r)}
	e := event{version: s.version, value: s.value}
	signer := i.name
	if change != nil {
		change(&s, &e)
	}
	if e.proof == "" {
		e.proof = i.keys.prove(signer, s)
	}
	return e.bytes()
}

func (i *impostor) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	i.requests.Add(1)
	challenge, err := parseChallenge(r.Header.Get(challengeHeader))
	if err != nil || challenge == nil {
		i.t.Errorf("a follower without a challenge: %v", err)
		return
	}
	w.Header().Set("Content-Type", eventStream)
	i.answer(w, challenge)
}

// follow has a follower dial the impostor, and returns what it hears and reports.
func (i *impostor) follow(t *testing.T, change func(*Config)) (*ear, reports) {
	t.Helper()
	server := httptest.NewServer(i)
	t.Cleanup(server.Close)
	cells, said := memory.NewPolled(), make(reports, 1000)
	r := held(i.name, 1, 1)
	r.LeaderAddr = server.Listener.Addr().String()
	write(t, cells, testKey, r)
	follower := open(t, cells, func(c *Config) {
		c.OnError = said.note
		if change != nil {
			change(c)
		}
	})
	heard := listenTo(t, follower, testKey)
	if _, err := follower.Read(t.Context(), testKey); err != nil {
		t.Fatal(err)
	}
	return heard, said
}

func newImpostor(t *testing.T) *impostor {
	keys := newIdentities()
	return &impostor{t: t, keys: keys, name: keys.issue()}
}

// TestThreats goes through those of the package comment. In each case a sound event comes first, so that the connection
// is known to work, and the bad one is dropped with the connection.
func TestThreats(t *testing.T) {
	stranger := newIdentities()
	other := stranger.issue()
	var old []byte
	tests := []struct {
		name   string
		why    string
		report string
		bad    func(i *impostor, challenge []byte) []byte
	}{
		{"no proof", "anybody may sit at an address", errProof.Error(), func(i *impostor, c []byte) []byte {
			return bytes.Replace(i.event(c, 2, held(i.name, 1, 2), nil), []byte("proof:"), []byte("x:"), 1)
		}},
		{"another's key", "the address is reused by another peer", errProof.Error(), func(i *impostor, c []byte) []byte {
			return i.event(c, 2, held(i.name, 1, 2), func(s *statement, e *event) { e.proof = stranger.prove(other, *s) })
		}},
		{"another's key and record", "it is the leader of something else", errProof.Error(), func(i *impostor, c []byte) []byte {
			return i.event(c, 2, held(other, 1, 2), func(s *statement, e *event) { e.proof = stranger.prove(other, *s) })
		}},
		{"another's record", "a leader speaks for itself alone", errStranger.Error(), func(i *impostor, c []byte) []byte {
			return i.event(c, 2, held(other, 9, 2), nil)
		}},
		{"replay from another connection", "it was recorded", errProof.Error(), func(i *impostor, c []byte) []byte {
			if old == nil {
				old = i.event(c, 2, held(i.name, 1, 2), nil)
				return append(bytes.Clone(old), "id: 1\n\n"...) // sound the first time, and then the connection ends
			}
			return old
		}},
		{"replay within the connection", "somebody in between repeats it", errProof.Error(), func(i *impostor, c []byte) []byte {
			return i.event(c, 1, held(i.name, 1, 1), nil)
		}},
		{"leaving out", "somebody in between holds one back", errProof.Error(), func(i *impostor, c []byte) []byte {
			return i.event(c, 3, held(i.name, 1, 3), nil)
		}},
		{"another election", "the same process leads that too", errProof.Error(), func(i *impostor, c []byte) []byte {
			return i.event(c, 2, held(i.name, 1, 2), func(s *statement, _ *event) { s.key = "payments" })
		}},
		{"another version", "somebody in between changed it", errProof.Error(), func(i *impostor, c []byte) []byte {
			return i.event(c, 2, held(i.name, 1, 2), func(_ *statement, e *event) { e.version = "8" })
		}},
		{"another value", "somebody in between changed it", errProof.Error(), func(i *impostor, c []byte) []byte {
			return bytes.Replace(i.event(c, 2, held(i.name, 1, 2), nil), []byte(`"term":1`), []byte(`"term":2`), 1)
		}},
		{"proof of a plain answer", "each has a place of its own", errProof.Error(), func(i *impostor, c []byte) []byte {
			return i.event(c, 0, held(i.name, 1, 2), nil)
		}},
		{"signed nonsense", "a faulty leader", record.ErrForeign.Error(), func(i *impostor, c []byte) []byte {
			return i.event(c, 2, held(i.name, 1, 2), func(s *statement, e *event) {
				s.value = []byte("nonsense")
				e.value = s.value
			})
		}},
		{"signed vacancy", "nobody holds it", errStranger.Error(), func(i *impostor, c []byte) []byte {
			r := held(i.name, 1, 2)
			r.LeaderID = ""
			return i.event(c, 2, r, nil)
		}},
		{"signed excess", "a faulty leader", "malformed", func(i *impostor, c []byte) []byte {
			return i.event(c, 2, held(i.name, 1, 2), func(s *statement, e *event) {
				s.value = bytes.Replace(s.value, []byte(`"leaseMillis":15000`), []byte(`"leaseMillis":9999999`), 1)
				e.value = s.value
			})
		}},
		{"endless line", "memory is bounded", errLine.Error(), func(*impostor, []byte) []byte {
			return bytes.Repeat([]byte("x"), 1<<20)
		}},
		{"endless event", "memory is bounded", errEvent.Error(), func(*impostor, []byte) []byte {
			return bytes.Repeat([]byte("x: y\n"), 1<<16)
		}},
		{"the end", "a process ended", "stream has ended", func(*impostor, []byte) []byte { return nil }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			i := newImpostor(t)
			i.answer = func(w http.ResponseWriter, c []byte) {
				_, _ = w.Write(i.event(c, 1, held(i.name, 1, 1), nil))
				if bad := tt.bad(i, c); bad != nil {
					_, _ = w.Write(bad)
					// What comes after the bad one would be sound.
					_, _ = w.Write(i.event(c, 3, released(i.name, 1, 60), nil))
				}
			}
			heard, said := i.follow(t, nil)
			heard.hears(t, "7")
			said.until(t, tt.report)
			for len(heard.entries) > 0 {
				e := <-heard.entries
				if r, err := record.Decode(e.Value); err != nil || r.Incarnation != i.name || r.Term != 1 || r.Seq > 2 {
					t.Errorf("believed: %s: %s", e.Value, tt.why)
				}
			}
			if t.Failed() {
				t.Logf("why: %s", tt.why)
			}
		})
	}
}

// TestAnswers: whatever else may be at the address ends in a report, and is tried again.
func TestAnswers(t *testing.T) {
	t.Parallel()
	var trapped atomic.Int64
	trap := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { trapped.Add(1) }))
	t.Cleanup(func() { // after all within
		trap.Close()
		if trapped.Load() > 0 {
			t.Error("a redirect was followed")
		}
	})
	quick := func(c *Config) { c.Timeout = 100 * time.Millisecond }
	tests := []struct {
		name   string
		report string
		change func(*Config)
		answer func(w http.ResponseWriter, challenge []byte)
	}{
		{"not leading", "404", nil, func(w http.ResponseWriter, _ []byte) { w.WriteHeader(http.StatusNotFound) }},
		{"full", "503", nil, func(w http.ResponseWriter, _ []byte) { w.WriteHeader(http.StatusServiceUnavailable) }},
		{"redirect", "302", nil, func(w http.ResponseWriter, _ []byte) {
			w.Header().Set("Location", trap.URL)
			w.WriteHeader(http.StatusFound)
		}},
		{"plain answer", errNotStream.Error(), nil, func(w http.ResponseWriter, _ []byte) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, "{}")
		}},
		{"reset", "reset by peer", nil, func(w http.ResponseWriter, _ []byte) { // said with the port of this end, another each time
			conn, _, err := w.(http.Hijacker).Hijack()
			if err == nil {
				_ = conn.(*net.TCPConn).SetLinger(0)
				_ = conn.Close()
			}
		}},
		{"large header", "header", nil, func(w http.ResponseWriter, _ []byte) {
			w.Header().Set("X", strings.Repeat("x", 1<<20))
		}},
		{"no answer", errSilent.Error(), quick, func(http.ResponseWriter, []byte) { time.Sleep(300 * time.Millisecond) }},
		{"no proof in time", errSilent.Error(), quick, func(w http.ResponseWriter, _ []byte) {
			for range 30 { // being alive is not enough
				_, _ = io.WriteString(w, heartbeat)
				_ = http.NewResponseController(w).Flush()
				time.Sleep(10 * time.Millisecond)
			}
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			i := newImpostor(t)
			i.answer = tt.answer
			t.Parallel()
			heard, said := i.follow(t, tt.change)
			last := said.until(t, tt.report)
			eventually(t, "it is tried again", func() bool { return i.requests.Load() > 4 })
			if len(heard.entries) > 0 {
				t.Error("something was heard")
			}
			for len(said) > 0 { // two timers may run out in either order, so that there are two faults in turn
				next := <-said
				if strings.Map(wordsOnly, next.Error()) == strings.Map(wordsOnly, last.Error()) {
					t.Errorf("said again: %v", next)
				}
				last = next
			}
		})
	}
}

// TestSilenceEndsAStream: a leader that was there and is silent for a whole lease is dialled anew.
func TestSilenceEndsAStream(t *testing.T) {
	t.Parallel()
	const lease = 1500 * time.Millisecond
	i := newImpostor(t)
	left := make(chan struct{}, 100)
	i.answer = func(w http.ResponseWriter, c []byte) {
		r := held(i.name, 1, 1)
		r.Lease = lease
		_, _ = w.Write(i.event(c, 1, r, nil))
		flush := http.NewResponseController(w).Flush
		first, gap := i.requests.Load() == 1, time.Duration(0)
		for range 7 { // heartbeats are signs of life, for longer than a lease
			began := time.Now()
			time.Sleep(lease / 5)
			_, _ = io.WriteString(w, heartbeat)
			_ = flush()
			gap = max(gap, time.Since(began))
			if first && i.requests.Load() > 1 && gap < lease/2 {
				t.Error("it left in spite of heartbeats")
			}
		}
		for i.requests.Load() == 1 {
			time.Sleep(10 * time.Millisecond)
		}
		left <- struct{}{}
	}
	_, said := i.follow(t, nil)
	said.until(t, errSilent.Error())
	select {
	case <-left:
	case <-time.After(patience):
		t.Error("it is not dialled anew")
	}
}

// TestNetworks: only what an address turns out to be counts, so a name does not help.
func TestNetworks(t *testing.T) {
	narrow := []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}
	for _, host := range []string{"127.0.0.1", "localhost", "[::ffff:127.0.0.1]"} {
		t.Run(host, func(t *testing.T) {
			var reached atomic.Bool
			server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached.Store(true) }))
			defer server.Close()
			_, port, _ := net.SplitHostPort(server.Listener.Addr().String())
			cells, said := memory.NewPolled(), make(reports, 100)
			s := open(t, cells, func(c *Config) { c.Networks, c.OnError = narrow, said.note })
			r := held(newIdentities().issue(), 1, 1)
			r.LeaderAddr = host + ":" + port
			write(t, cells, testKey, r)
			listenTo(t, s, testKey)
			_, _ = s.Read(t.Context(), testKey)
			said.until(t, "outside the networks")
			if reached.Load() {
				t.Error("it was dialled")
			}
		})
	}
}

func TestMappedAddressIsInItsNetwork(t *testing.T) {
	check := within([]netip.Prefix{netip.MustParsePrefix("10.1.0.0/16"), netip.MustParsePrefix("fd00::/8")})
	for address, ok := range map[string]bool{
		"10.1.2.3:443": true, "[::ffff:10.1.2.3]:443": true, "[fd00::1]:443": true, "[fd00::1%eth0]:443": true,
		"10.2.0.1:443": false, "[fe80::1%eth0]:443": false, "127.0.0.1:80": false, "169.254.169.254:80": false, "@socket": false,
	} {
		if err := check("tcp", address, nil); (err == nil) != ok {
			t.Errorf("%s: %v", address, err)
		}
	}
}

func TestAddresses(t *testing.T) {
	d := newDialler(Config{Path: DefaultPath}.withDefaults())
	for address, want := range map[string]string{
		"10.0.0.1:8443":   "http://10.0.0.1:8443/health/leadership?election=a%2Fb",
		"node-1":          "http://node-1/health/leadership?election=a%2Fb",
		"[::1]:80":        "http://[::1]:80/health/leadership?election=a%2Fb",
		"http://node-1":   "",
		"node-1/admin":    "",
		"a@node-1":        "",
		"node-1?x=1":      "",
		"node-1#x":        "",
		":80":             "",
		"node 1":          "",
		"node-1:eighty":   "",
		"node-1\r\nX: y":  "",
		"[::1]:80/admin#": "",
	} {
		u, err := d.url(address, "a/b")
		if got := fmt.Sprint(u); want == "" && err == nil || want != "" && got != want {
			t.Errorf("%q: %s, %v; want %q", address, got, err, want)
		}
	}
}

// TestSlowFollower: one that does not read is cut off, and the leader's writes never wait for it.
func TestSlowFollower(t *testing.T) {
	t.Parallel()
	leader := open(t, memory.NewPolled(), func(c *Config) { c.Timeout = 2 * time.Second })
	pipes := &pipes{conns: make(chan net.Conn), closed: make(chan struct{})}
	server := &http.Server{Handler: leader.Handler()} // without limits of its own
	go func() { _ = server.Serve(pipes) }()
	defer func() { _ = server.Close() }()
	name := leader.Incarnation()
	write(t, leader, testKey, held(name, 1, 1))
	here, there := net.Pipe() // it buffers nothing
	pipes.conns <- there
	fmt.Fprintf(here, "GET %s HTTP/1.1\r\nHost: x\r\nAccept: %s\r\n\r\n", DefaultPath, eventStream)
	eventually(t, "the stream is there", func() bool { return leader.streams() == 1 })
	for n := uint64(2); n < 60; n++ {
		write(t, leader, testKey, held(name, 1, n))
	}
	if leader.streams() != 1 {
		t.Error("the writes took until the stream was cut off")
	}
	eventually(t, "the stream is cut off", func() bool { return leader.streams() == 0 })
}

// pipes is a listener for connections that a test makes.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	select {
	case <-p.closed:
	default:
		close(p.closed)
	}
	return nil
}

func (p *pipes) Addr() net.Addr { return &net.TCPAddr{} }

// A statement must not be readable as another one.
func TestStatementsAreUnambiguous(t *testing.T) {
	seen := map[string]statement{}
	for _, s := range []statement{
		{key: "ab", version: "c"}, {key: "a", version: "bc"}, {key: "abc"}, {version: "abc"}, {value: []byte("abc")},
		{challenge: []byte("abc")}, {place: 1}, {place: 256}, {key: "ab", value: []byte("c")},
		{key: "ab", version: driver.Version(make([]byte, 8)), value: []byte("c")},
	} {
		m := string(s.message())
		if other, ok := seen[m]; ok {
			t.Errorf("%+v and %+v are signed alike", s, other)
		}
		seen[m] = s
	}
}
