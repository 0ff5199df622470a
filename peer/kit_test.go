package peer

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/faults"
	"github.com/tenure-go/tenure/driver/memory"
	"github.com/tenure-go/tenure/internal/pipenet"
	"github.com/tenure-go/tenure/internal/record"
	"github.com/tenure-go/tenure/internal/test/wait"
)

const (
	testKey   = "billing"
	testLease = 15 * time.Second
)

// wires connect peers: pipes in bubbles, or sockets. The zero value makes no connections.
type wires struct {
	listen func(network, address string) (net.Listener, error)
	// dial is nil if stores dial as usual.
	dial func(ctx context.Context, network, address string) (net.Conn, error)
	any  string // the address that stands for a free one
}

// overPipes runs a test in its own bubble, with pipes as the network.
func overPipes(t *testing.T, run func(*testing.T, wires)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		n := new(pipenet.Network)
		run(t, wires{listen: n.Listen, dial: n.DialContext})
	})
}

// scenarios run over pipes. Those in which the network itself matters also run over TCP, in
// TestOverSockets.
var scenarios = []struct {
	name string
	tcp  bool
	run  func(*testing.T, wires)
}{
	{"a follower receives each write", true, followerReceivesEachWrite},
	{"a follower returns to a leader that released", false, followerReturnsToALeaderThatReleased},
	{"a release is pushed before Close", true, releaseIsPushedBeforeClose},
	{"a write is pushed when a read confirms it", false, writeIsPushedWhenAReadConfirmsIt},
	{"a follower comes back after an outage", true, followerComesBackAfterAnOutage},
	{"stop from see", false, stopFromSee},
	{"many keys", true, manyKeys},
	{"Close leaves nothing", true, closeLeavesNothing},
	{"Close during pushes", true, closeDuringPushes},
	{"silence ends a stream", false, silenceEndsAStream},
	{"a slow follower", false, slowFollower},
	{"a stream ends with the lease", false, streamEndsWithTheLease},
	{"a stream outlives the server's timeouts", false, streamOutlivesTheServersTimeouts},
	{"a stream outlives the limits of Serve", false, streamOutlivesTheLimitsOfServe},
	{"a stream over TLS outlives the limits of Serve", false, secureStreamOutlivesTheLimitsOfServe},
	{"streams are bounded", true, streamsAreBounded},
	{"connections are bounded", true, connectionsAreBounded},
	{"a closed connection counts once", false, closedConnectionCountsOnce},
	{"TLS", true, followOverTLS},
	{"followers of a living leader read nothing", false, followersReadNothing},
	{"followers know that nothing is pushed", false, followersKnowThatNothingIsPushed},
	{"a leader without a store answers 404", false, leaderWithoutStoreAnswers404},
	{"an election without reachable peers", false, electionWithoutReachablePeers},
}

func TestOverPipes(t *testing.T) {
	for _, s := range scenarios {
		t.Run(s.name, func(t *testing.T) { overPipes(t, s.run) })
	}
}

// free returns a listener on any address.
func (w wires) free(t testing.TB) net.Listener {
	t.Helper()
	l, err := w.listen("tcp", w.any)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// connect makes a store dial over these wires. Pipes are connected without a check of Networks.
func (w wires) connect(s *Store) {
	if d := s.hub.dial; w.dial != nil {
		d.transport.DialContext = func(_ context.Context, network, address string) (net.Conn, error) {
			return w.dial(d.life, network, address)
		}
	}
}

// client returns a client that makes requests as a browser would, until the test ends.
func (w wires) client(t testing.TB) *http.Client {
	transport := &http.Transport{DialContext: w.dial}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// server serves any handler.
func (w wires) server(t testing.TB, h http.Handler) *httptest.Server {
	s := &httptest.Server{Listener: w.free(t), Config: &http.Server{Handler: h}}
	t.Cleanup(s.Close)
	return s
}

var loopback = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}

// held returns a record as its holder writes it, the n-th of the term.
func held(incarnation string, term, n uint64) record.Record {
	return record.Record{
		LeaderID: "node-1", LeaderAddr: "127.0.0.1:1", Term: term, Seq: n, Lease: testLease, Incarnation: incarnation,
		Nonce: strings.Repeat("n", int(n)) + string(rune('a'+term)),
	}
}

func released(incarnation string, term, n uint64) record.Record {
	r := held(incarnation, term, n)
	r.Released = true
	return r
}

func encode(t testing.TB, r record.Record) []byte {
	t.Helper()
	b, err := record.Encode(r)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// write is a compare-and-swap from the present version.
func write(t testing.TB, s driver.Store, key string, r record.Record) driver.Version {
	t.Helper()
	e, err := s.Read(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	v, err := s.CompareAndSwap(t.Context(), key, e.Version, encode(t, r))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// reports collects the calls of OnError.
type reports chan error

func (r reports) note(_ string, err error) {
	select {
	case r <- err:
	default:
	}
}

// until receives reports until one contains the text, and returns it. If the text is empty, it
// waits for a nil.
func (r reports) until(t *testing.T, part string) error {
	t.Helper()
	var all []string
	late := wait.Context(t)
	for {
		select {
		case err := <-r:
			if part == "" && err == nil || part != "" && err != nil && strings.Contains(err.Error(), part) {
				return err
			}
			all = append(all, errors.Join(err, errors.New("")).Error())
		case <-late.Done():
			t.Fatalf("no report of %q; reported were %q", part, all[:min(len(all), 8)])
			return nil
		}
	}
}

// forever is the lease of an election that goes on.
func forever(uint64) time.Duration { return time.Hour }

// open returns a store that is closed with the test.
func open(t testing.TB, on wires, inner driver.Store, change func(*Config)) *Store {
	t.Helper()
	cfg := Config{Networks: loopback, Timeout: 3 * time.Second, Retry: 50 * time.Millisecond}
	if change != nil {
		change(&cfg)
	}
	s, err := New(inner, cfg)
	if err != nil {
		t.Fatal(err)
	}
	on.connect(s)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// serving runs the store's own server on a free address, and returns the address.
func serving(t testing.TB, on wires, s *Store) string {
	t.Helper()
	l := on.free(t)
	var running sync.WaitGroup
	running.Go(func() {
		// A short test may close the store before this begins.
		if err := s.Serve(l); err != nil && !errors.Is(err, errClosed) {
			t.Error(err)
		}
	})
	t.Cleanup(func() {
		_ = s.Close()
		running.Wait()
	})
	return l.Addr().String()
}

// receiver collects the entries that a watch receives.
type receiver struct {
	entries chan driver.Entry
	stop    func()
}

func listenTo(t testing.TB, s *Store, key string) *receiver {
	t.Helper()
	h := &receiver{entries: make(chan driver.Entry, 1000)}
	stop, err := s.Watch(t.Context(), key, func(e driver.Entry) { h.entries <- e })
	if err != nil {
		t.Fatal(err)
	}
	h.stop = stop
	t.Cleanup(stop)
	return h
}

// await waits for a version, and returns its entry.
func (h *receiver) await(t *testing.T, v driver.Version) driver.Entry {
	t.Helper()
	var others []driver.Version
	late := wait.Context(t)
	for {
		select {
		case e := <-h.entries:
			if e.Version == v {
				return e
			}
			others = append(others, e.Version)
		case <-late.Done():
			t.Fatalf("version %q is not pushed; pushed were %q", v, others)
		}
	}
}

// streams counts all served streams.
func (s *Store) streams() (n int) {
	s.books.mu.Lock()
	defer s.books.mu.Unlock()
	for _, seat := range s.books.seats {
		n += seat.streams.all
	}
	return n
}

// pair is a leader that serves, and a follower that has read its record and watches.
type pair struct {
	wires
	cells            *memory.Polled
	faults           faults.Store // the leader's way to the cells
	leader, follower *Store
	name             string // the leader's incarnation
	address          string
	version          driver.Version
	received         *receiver
	said             reports
}

func newPair(t *testing.T, on wires, leader, follower func(*Config)) *pair {
	t.Helper()
	p := &pair{wires: on, cells: memory.NewPolled(), said: make(reports, 1000)}
	p.faults = faults.New(p.cells, 1, faults.Plan{})
	p.leader = open(t, on, p.faults, leader)
	p.address = serving(t, on, p.leader)
	p.name = p.leader.Incarnation(forever)
	p.version = p.write(t, held(p.name, 1, 1))
	p.follower = open(t, on, p.cells, func(c *Config) {
		c.OnError = p.said.note
		if follower != nil {
			follower(c)
		}
	})
	p.received = listenTo(t, p.follower, testKey)
	if _, err := p.follower.Read(t.Context(), testKey); err != nil {
		t.Fatal(err)
	}
	return p
}

// write lets the leader write, with its address.
func (p *pair) write(t *testing.T, r record.Record) driver.Version {
	t.Helper()
	r.LeaderAddr = p.address
	return write(t, p.leader, testKey, r)
}
