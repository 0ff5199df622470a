package peer

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/memory"
	"github.com/tenure-go/tenure/internal/loglimit"
	"github.com/tenure-go/tenure/internal/record"
	"github.com/tenure-go/tenure/internal/test/wait"
)

// impostor answers in place of a leader, with or without the leader's keys.
type impostor struct {
	t        *testing.T
	keys     *identities
	name     string // the name in the store
	requests atomic.Int64
	answer   func(w http.ResponseWriter, challenge []byte)
}

// event signs what a sound leader would sign, unless change modifies it.
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

// follow makes a follower dial the impostor. It returns the pushes and the reports of the follower.
func (i *impostor) follow(t *testing.T, on wires, change func(*Config)) (*receiver, reports) {
	t.Helper()
	server := on.server(t, i)
	server.Start()
	cells, said := memory.NewPolled(), make(reports, 1000)
	r := held(i.name, 1, 1)
	r.LeaderAddr = server.Listener.Addr().String()
	write(t, cells, testKey, r)
	follower := open(t, on, cells, func(c *Config) {
		c.OnError = said.note
		if change != nil {
			change(c)
		}
	})
	received := listenTo(t, follower, testKey)
	if _, err := follower.Read(t.Context(), testKey); err != nil {
		t.Fatal(err)
	}
	return received, said
}

func newImpostor(t *testing.T) *impostor {
	keys := newIdentities()
	return &impostor{t: t, keys: keys, name: keys.issue(forever)}
}

// TestThreats covers the threats of the package comment. In each case a sound event comes first, so
// that the connection is known to work. The bad event is dropped, with the connection.
func TestThreats(t *testing.T) {
	stranger := newIdentities()
	other := stranger.issue(forever)
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
				// Sound the first time. Then the connection ends.
				return append(bytes.Clone(old), "id: 1\n\n"...)
			}
			return old
		}},
		{"replay within the connection", "an attacker in between repeats it", errProof.Error(), func(i *impostor, c []byte) []byte {
			return i.event(c, 1, held(i.name, 1, 1), nil)
		}},
		{"leaving out", "an attacker in between holds one back", errProof.Error(), func(i *impostor, c []byte) []byte {
			return i.event(c, 3, held(i.name, 1, 3), nil)
		}},
		{"another election", "the same process leads that too", errProof.Error(), func(i *impostor, c []byte) []byte {
			return i.event(c, 2, held(i.name, 1, 2), func(s *statement, _ *event) { s.key = "payments" })
		}},
		{"another version", "an attacker in between changed it", errProof.Error(), func(i *impostor, c []byte) []byte {
			return i.event(c, 2, held(i.name, 1, 2), func(_ *statement, e *event) { e.version = "8" })
		}},
		{"another value", "an attacker in between changed it", errProof.Error(), func(i *impostor, c []byte) []byte {
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
		{"signed vacancy", "it has no holder", errStranger.Error(), func(i *impostor, c []byte) []byte {
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
			overPipes(t, func(t *testing.T, on wires) {
				i := newImpostor(t)
				i.answer = func(w http.ResponseWriter, c []byte) {
					_, _ = w.Write(i.event(c, 1, held(i.name, 1, 1), nil))
					if text := tt.bad(i, c); text != nil {
						_, _ = w.Write(text)
						// The events after the bad one would be sound.
						_, _ = w.Write(i.event(c, 3, released(i.name, 1, 60), nil))
					}
				}
				received, said := i.follow(t, on, nil)
				received.await(t, "7")
				said.until(t, tt.report)
				for len(received.entries) > 0 {
					e := <-received.entries
					if e.Absent() {
						continue // a stream has ended, which causes one read
					}
					if r, err := record.Decode(e.Value); err != nil || r.Incarnation != i.name || r.Term != 1 || r.Seq > 2 {
						t.Errorf("believed: %s: %s", e.Value, tt.why)
					}
				}
			})
		})
	}
}

// TestAnswers: any other answer at the address causes a report, and the follower tries again.
func TestAnswers(t *testing.T) {
	const trap = "127.0.0.1:7"
	quick := func(c *Config) { c.Timeout = 100 * time.Millisecond }
	tests := []answer{
		{"not leading", "404", nil, func(w http.ResponseWriter, _ []byte) { w.WriteHeader(http.StatusNotFound) }},
		{"full", "503", nil, func(w http.ResponseWriter, _ []byte) { w.WriteHeader(http.StatusServiceUnavailable) }},
		{"redirect", "302", nil, func(w http.ResponseWriter, _ []byte) {
			w.Header().Set("Location", "http://"+trap)
			w.WriteHeader(http.StatusFound)
		}},
		{"plain answer", errNotStream.Error(), nil, func(w http.ResponseWriter, _ []byte) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, "{}")
		}},
		{"closed", "stream has ended", nil, func(w http.ResponseWriter, _ []byte) {
			if conn, _, err := w.(http.Hijacker).Hijack(); err == nil {
				_ = conn.Close()
			}
		}},
		{"large header", "header", nil, func(w http.ResponseWriter, _ []byte) {
			w.Header().Set("X", strings.Repeat("x", 1<<20))
		}},
		{"no answer", errSilent.Error(), quick, func(http.ResponseWriter, []byte) { time.Sleep(300 * time.Millisecond) }},
		{"no proof in time", errSilent.Error(), quick, func(w http.ResponseWriter, _ []byte) {
			for range 30 { // heartbeats are not enough
				_, _ = io.WriteString(w, heartbeat)
				_ = http.NewResponseController(w).Flush()
				time.Sleep(10 * time.Millisecond)
			}
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			overPipes(t, func(t *testing.T, on wires) {
				l, err := on.listen("tcp", trap)
				if err != nil {
					t.Fatal(err)
				}
				go func() {
					if _, err := l.Accept(); err == nil {
						t.Error("a redirect was followed")
					}
				}()
				defer l.Close()
				tt.isReported(t, on)
			})
		})
	}
}

// answer is an answer that an address may give instead of a stream.
type answer struct {
	name   string
	report string
	change func(*Config)
	answer func(w http.ResponseWriter, challenge []byte)
}

func (a answer) isReported(t *testing.T, on wires) {
	i := newImpostor(t)
	i.answer = a.answer
	received, said := i.follow(t, on, a.change)
	last := said.until(t, a.report)
	wait.Until(t, "it is tried again", func() bool { return i.requests.Load() > 4 })
	for len(received.entries) > 0 {
		if e := <-received.entries; e.Lost == nil {
			t.Errorf("%+v was pushed", e)
		}
	}
	// Two timers may run out in either order, so two faults may alternate.
	for len(said) > 0 {
		next := <-said
		if loglimit.Cause(next.Error(), "") == loglimit.Cause(last.Error(), "") {
			t.Errorf("said again: %v", next)
		}
		last = next
	}
}

// If a leader was there and is silent for a whole lease, the follower dials
// again.
func silenceEndsAStream(t *testing.T, on wires) {
	const lease = 1500 * time.Millisecond
	i := newImpostor(t)
	left := make(chan struct{}, 100)
	i.answer = func(w http.ResponseWriter, c []byte) {
		r := held(i.name, 1, 1)
		r.Lease = lease
		_, _ = w.Write(i.event(c, 1, r, nil))
		flush := http.NewResponseController(w).Flush
		first := i.requests.Load() == 1
		for range 7 { // heartbeats are signs of life, for longer than a lease
			time.Sleep(lease / 5)
			_, _ = io.WriteString(w, heartbeat)
			_ = flush()
			if first && i.requests.Load() > 1 {
				t.Error("it left in spite of heartbeats")
			}
		}
		silent := time.Now()
		for i.requests.Load() == 1 {
			time.Sleep(10 * time.Millisecond)
		}
		if d := time.Since(silent); first && (d < lease || d > lease+50*time.Millisecond) {
			t.Errorf("it left after a silence of %v", d)
		}
		left <- struct{}{}
	}
	_, said := i.follow(t, on, nil)
	said.until(t, errSilent.Error())
	<-left
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
	d := newDialler(Config{Path: DefaultPath}.withDefaults(), nil)
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

// A follower that does not read is cut off, and the leader's writes never wait
// for it.
func slowFollower(t *testing.T, on wires) {
	leader := open(t, on, memory.NewPolled(), func(c *Config) { c.Timeout = 2 * time.Second })
	server := on.server(t, leader.Handler()) // without its own limits
	server.Start()
	name := leader.Incarnation(forever)
	write(t, leader, testKey, held(name, 1, 1))
	here, err := on.dial(t.Context(), "tcp", server.Listener.Addr().String()) // it buffers nothing
	if err != nil {
		t.Fatal(err)
	}
	defer here.Close()
	fmt.Fprintf(here, "GET %s HTTP/1.1\r\nHost: x\r\nAccept: %s\r\n\r\n", DefaultPath, eventStream)
	wait.Until(t, "the stream is there", func() bool { return leader.streams() == 1 })
	for n := uint64(2); n < 60; n++ {
		write(t, leader, testKey, held(name, 1, n))
	}
	if leader.streams() != 1 {
		t.Error("the writes took until the stream was cut off")
	}
	wait.Until(t, "the stream is cut off", func() bool { return leader.streams() == 0 })
}

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
