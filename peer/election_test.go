package peer_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/drivertest"
	"github.com/tenure-go/tenure/driver/faults"
	"github.com/tenure-go/tenure/driver/memory"
	"github.com/tenure-go/tenure/peer"
)

const (
	job      = "job"
	lease    = 2 * time.Second
	renew    = 400 * time.Millisecond
	patience = 30 * time.Second
)

// counting counts what one member asks of the store.
type counting struct {
	faults.Store
	reads, writes atomic.Int64
	sent          atomic.Pointer[time.Time] // when the last write went out
	blind         atomic.Bool               // reads fail
}

var errBlind = errors.New("may not read")

func (c *counting) Read(ctx context.Context, key string) (driver.Entry, error) {
	c.reads.Add(1)
	if c.blind.Load() {
		return driver.Entry{}, errBlind
	}
	return c.Store.Read(ctx, key)
}

func (c *counting) CompareAndSwap(ctx context.Context, key string, prev driver.Version, value []byte) (driver.Version, error) {
	c.writes.Add(1)
	now := time.Now()
	v, err := c.Store.CompareAndSwap(ctx, key, prev, value)
	if err == nil {
		c.sent.Store(&now)
	}
	return v, err
}

// member is a candidate with a listener, as a process has them.
type member struct {
	id      string
	address string
	cells   *counting
	peers   *peer.Store
	cancel  context.CancelFunc
	done    chan error
}

// won is told of each term.
type won struct {
	member *member
	term   *tenure.Term
	at     time.Time
}

func join(t *testing.T, shared driver.Store, id string, terms chan<- won) *member {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	m := &member{id: id, address: l.Addr().String(), done: make(chan error, 1)}
	m.cells = &counting{Store: faults.New(shared, 1, faults.Plan{})}
	m.peers, err = peer.New(m.cells, peer.Config{
		Networks: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, Retry: 200 * time.Millisecond,
	})
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = m.peers.Serve(l) }()
	t.Cleanup(func() { _ = m.peers.Close() })
	e, err := tenure.New(m.peers, job, tenure.Config{ID: id, Address: m.address, Lease: lease, Renew: renew})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	m.cancel = cancel
	t.Cleanup(cancel)
	go func() {
		m.done <- e.Run(ctx, func(ctx context.Context, term *tenure.Term) error {
			terms <- won{m, term, time.Now()}
			<-ctx.Done()
			return nil
		})
	}()
	return m
}

func receive[T any](t *testing.T, c <-chan T, what string) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(patience):
		t.Fatalf("no %s within %v", what, patience)
		panic("unreachable")
	}
}

// fleet is three members, of which one leads and the others follow it over their streams.
func fleet(t *testing.T) (leader won, followers []*member, terms chan won, cells *memory.Polled) {
	t.Helper()
	cells, terms = memory.NewPolled(), make(chan won, 100)
	var all []*member
	for _, id := range []string{"a", "b", "c"} {
		all = append(all, join(t, cells, id, terms))
	}
	leader = receive(t, terms, "leader")
	for _, m := range all {
		if m != leader.member {
			followers = append(followers, m)
		}
	}
	calm(t, followers, 3)
	return leader, followers, terms, cells
}

// calm waits until nobody has read for so many renewals: all follow by pushes. Whoever hears nothing reads more often than
// each second. What a busy machine holds up may cause a read, so that it may take more than one try.
func calm(t *testing.T, followers []*member, renewals int) {
	t.Helper()
	for end := time.Now().Add(patience); ; {
		before := reads(followers)
		time.Sleep(time.Duration(renewals) * renew)
		if reads(followers) == before {
			return
		}
		if time.Now().After(end) {
			t.Fatal("the followers go on reading the store")
		}
	}
}

func reads(members []*member) (n int64) {
	for _, m := range members {
		n += m.cells.reads.Load()
	}
	return n
}

func TestFollowersOfALivingLeaderReadNothing(t *testing.T) {
	t.Parallel()
	leader, followers, _, _ := fleet(t)
	began, written := time.Now(), leader.member.cells.writes.Load()
	calm(t, followers, 6)
	if n, most := leader.member.cells.writes.Load()-written, int64(time.Since(began)/renew)+2; n < 2 || n > most {
		t.Errorf("the leader wrote %d times in %d renewals", n, most-2)
	}
	if err := leader.term.Err(); err != nil {
		t.Error(err)
	}
}

// A release is claimed on as it was pushed: the winner needs no read before its claim.
func TestHandOverIsPushed(t *testing.T) {
	t.Parallel()
	leader, followers, terms, _ := fleet(t)
	for _, m := range followers {
		m.cells.blind.Store(true)
	}
	began := time.Now()
	leader.member.cancel()
	next := receive(t, terms, "successor")
	if next.term.Token() <= leader.term.Token() {
		t.Errorf("token %d after %d", next.term.Token(), leader.term.Token())
	}
	if err := receive(t, leader.member.done, "end of the leader"); err != nil {
		t.Error(err)
	}
	_ = leader.member.peers.Close()
	for _, m := range followers { // the third now follows the second
		if m.cells.blind.Store(false); m != next.member {
			calm(t, []*member{m}, 3)
		}
	}
	t.Logf("hand-over in %v", next.at.Sub(began))
}

// A crash is acted on when the lease has run out: not before, and soon after.
func TestCrashIsActedOnWhenTheLeaseEnds(t *testing.T) {
	t.Parallel()
	leader, _, terms, cells := fleet(t)
	leader.member.cells.Partition()
	_ = leader.member.peers.Close()
	last, err := cells.Read(t.Context(), job)
	if err != nil || last.Absent() {
		t.Fatal(err)
	}
	began := time.Now()
	next := receive(t, terms, "successor")
	if d := next.at.Sub(*leader.member.cells.sent.Load()); d < lease {
		t.Errorf("elected %v after the last renewal was sent, with a lease of %v", d, lease)
	}
	if d := next.at.Sub(began); d > lease+5*time.Second {
		t.Errorf("elected %v after the crash, with a lease of %v", d, lease)
	}
	if leader.term.Err() == nil {
		t.Error("two leaders")
	}
	t.Logf("elected %v after the crash", next.at.Sub(began))
}

func status(t *testing.T, address string) int {
	t.Helper()
	resp, err := http.Get("http://" + address + peer.DefaultPath)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	_ = resp.Body.Close()
	return resp.StatusCode
}

// A leader that cannot reach the store says so as soon as its lease is over, though its process is well.
func TestLeaderWithoutStoreSays404(t *testing.T) {
	t.Parallel()
	terms := make(chan won, 100)
	m := join(t, memory.NewPolled(), "a", terms)
	leader := receive(t, terms, "leader")
	if code := status(t, m.address); code != http.StatusOK {
		t.Errorf("it leads, and answers %d", code)
	}
	m.cells.Partition()
	if code := status(t, m.address); code != http.StatusOK && leader.term.Err() == nil {
		t.Errorf("its lease is valid, and it answers %d", code)
	}
	<-leader.term.Context().Done()
	answers(t, m, http.StatusNotFound) // ledger_test.go says when
	m.cells.Heal()
	answers(t, m, http.StatusOK)
}

// answers waits until a member does.
func answers(t *testing.T, m *member, code int) {
	t.Helper()
	for end := time.Now().Add(patience); status(t, m.address) != code; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("it never answers %d", code)
		}
	}
}

// A peer that cannot be reached costs nothing but reads.
func TestElectionWithoutReachablePeers(t *testing.T) {
	t.Parallel()
	cells, terms := memory.NewPolled(), make(chan won, 100)
	a := join(t, cells, "a", terms)
	first := receive(t, terms, "leader")
	_ = a.peers.Close() // its server; its election goes on
	join(t, cells, "b", terms)
	time.Sleep(lease)
	if err := first.term.Err(); err != nil || len(terms) > 0 {
		t.Errorf("the leader was replaced: %v", err)
	}
	a.cancel()
	if next := receive(t, terms, "successor"); next.member.id != "b" {
		t.Errorf("%s leads", next.member.id)
	}
}

// The kit's elections take place in one process, so what is pushed comes from the swaps themselves.
func TestElections(t *testing.T) {
	drivertest.RunElectionInBubbles(t, func(t testing.TB) drivertest.Harness {
		cells := memory.NewPolled()
		open := func() driver.Store {
			s, err := peer.New(cells, peer.Config{ServeOnly: true, Clock: tenure.StandardClock()})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = s.Close() })
			return s
		}
		return drivertest.Harness{
			Store: open(), Peer: open(),
			Delete: func(_ context.Context, key string) error { cells.Delete(key); return nil },
			Purge:  func(_ context.Context, key string) error { cells.Purge(key); return nil },
		}
	})
}
