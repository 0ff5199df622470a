package peer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/clock"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/drivertest"
	"github.com/tenure-go/tenure/driver/faults"
	"github.com/tenure-go/tenure/driver/memory"
	"github.com/tenure-go/tenure/electiontest"
	"github.com/tenure-go/tenure/internal/pipenet"
	"github.com/tenure-go/tenure/internal/test/wait"
)

const (
	job   = "job"
	lease = 2 * time.Second
	renew = 400 * time.Millisecond
)

// counting counts the store calls of one member.
type counting struct {
	faults.Store
	reads, writes atomic.Int64
	sent          atomic.Pointer[time.Time] // the time at which the last write was sent
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

// member is a candidate with a listener, like a process.
type member struct {
	id      string
	address string
	elected *tenure.Election
	cells   *counting
	peers   *Store
	cancel  context.CancelFunc
	done    chan error
}

// won reports one term.
type won struct {
	member *member
	term   *tenure.Term
	at     time.Time
}

func join(t *testing.T, on wires, shared driver.Store, id string, lasting time.Duration, terms chan<- won) *member {
	t.Helper()
	l := on.free(t)
	m := &member{id: id, address: l.Addr().String(), done: make(chan error, 1)}
	m.cells = &counting{Store: faults.New(shared, 1, faults.Plan{})}
	m.peers = open(t, on, m.cells, func(c *Config) { c.Retry = 200 * time.Millisecond })
	go func() { _ = m.peers.Serve(l) }()
	e, err := tenure.New(m.peers, job, tenure.Config{
		ID: id, Address: m.address, Lease: lasting, Tuning: tenure.Tuning{Renew: lasting / 5}, Clock: clock.Standard{},
	})
	if err != nil {
		t.Fatal(err)
	}
	m.elected = e
	ctx, cancel := context.WithCancel(context.Background())
	m.cancel = cancel
	var running sync.WaitGroup
	t.Cleanup(running.Wait)
	t.Cleanup(cancel)
	running.Go(func() {
		m.done <- e.Run(ctx, func(ctx context.Context, term *tenure.Term) error {
			terms <- won{m, term, time.Now()}
			<-ctx.Done()
			return nil
		})
	})
	return m
}

func receive[T any](t *testing.T, c <-chan T, what string) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-wait.Context(t).Done():
		t.Fatalf("no %s", what)
		panic("unreachable")
	}
}

// fleet returns three members. One leads, and the others follow it over their streams.
func fleet(t *testing.T, on wires, lasting time.Duration) (
	leader won, followers []*member, terms chan won, cells *memory.Polled,
) {
	t.Helper()
	cells, terms = memory.NewPolled(), make(chan won, 100)
	var all []*member
	for _, id := range []string{"a", "b", "c"} {
		all = append(all, join(t, on, cells, id, lasting, terms))
	}
	leader = receive(t, terms, "leader")
	for _, m := range all {
		if m != leader.member {
			followers = append(followers, m)
		}
	}
	wait.Until(t, "both follow", func() bool { return leader.member.peers.streams() == 2 })
	return leader, followers, terms, cells
}

// calm requires that no follower reads during this many renewals, because all follow by pushes. A
// follower without pushes reads more often than each second.
func calm(t *testing.T, followers []*member, renewals int) {
	t.Helper()
	before := reads(followers)
	time.Sleep(time.Duration(renewals) * renew)
	if n := reads(followers) - before; n > 0 {
		t.Errorf("the followers read the store %d times in %d renewals", n, renewals)
	}
}

func reads(members []*member) (n int64) {
	for _, m := range members {
		n += m.cells.reads.Load()
	}
	return n
}

func followersReadNothing(t *testing.T, on wires) {
	leader, followers, _, _ := fleet(t, on, lease)
	written := leader.member.cells.writes.Load()
	calm(t, followers, 10)
	if n := leader.member.cells.writes.Load() - written; n < 9 || n > 11 {
		t.Errorf("the leader wrote %d times in 10 renewals", n)
	}
	if err := leader.term.Err(); err != nil {
		t.Error(err)
	}
}

// The leader's server ends, and the leader goes on. Its followers poll.
func followersKnowThatNothingIsPushed(t *testing.T, on wires) {
	leader, followers, _, _ := fleet(t, on, lease)
	pushed := func(want bool) {
		for _, m := range followers {
			_, err := m.elected.Wait(t.Context(), func(s tenure.Status) bool { return s.Pushed == want && s.Leader.ID == leader.member.id })
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	pushed(true)
	if err := leader.member.peers.Close(); err != nil {
		t.Fatal(err)
	}
	pushed(false)
	if err := leader.term.Err(); err != nil {
		t.Error(err)
	}
}

// The winner claims on the pushed release, without a read before its claim. It has followed for a
// heartbeat (rule L3a).
func TestHandOverIsPushed(t *testing.T) {
	overPipes(t, func(t *testing.T, on wires) {
		began := time.Now()
		third := handOverIsPushed(t, on, lease, func(followers []*member) {
			calm(t, followers, 2)
			for _, m := range followers {
				m.cells.blind.Store(true)
			}
		})
		if d := time.Since(began) - 2*renew; d > 50*time.Millisecond {
			t.Errorf("an election and a hand-over took %v", d)
		}
		calm(t, []*member{third}, 3)
	})
}

// handOverIsPushed returns the member that now follows the second leader.
func handOverIsPushed(
	t *testing.T, on wires, lasting time.Duration, before func(followers []*member),
) (third *member) {
	leader, followers, terms, _ := fleet(t, on, lasting)
	before(followers)
	leader.member.cancel()
	next := receive(t, terms, "successor")
	if next.term.Token() <= leader.term.Token() {
		t.Errorf("token %d after %d", next.term.Token(), leader.term.Token())
	}
	if err := receive(t, leader.member.done, "end of the leader"); err != nil {
		t.Error(err)
	}
	_ = leader.member.peers.Close()
	for _, m := range followers {
		if m.cells.blind.Store(false); m != next.member {
			third = m
		}
	}
	wait.Until(t, "the third follows the second", func() bool { return next.member.peers.streams() == 1 })
	return third
}

// A follower acts on a crash when the lease has run out: not before, and soon after.
func TestCrashIsActedOnWhenTheLeaseEnds(t *testing.T) {
	overPipes(t, func(t *testing.T, on wires) {
		if d := crashIsActedOn(t, on); d > lease+100*time.Millisecond {
			t.Errorf("elected %v after the last renewal was sent, with a lease of %v", d, lease)
		}
	})
}

// crashIsActedOn returns the time from the last renewal of a crashed leader to the next election.
// It also accepts a leader that had lost its lease before, as may happen if the machine stalls.
func crashIsActedOn(t *testing.T, on wires) time.Duration {
	leader, _, terms, cells := fleet(t, on, lease)
	leader.member.cells.Partition()
	_ = leader.member.peers.Close()
	last, err := cells.Read(t.Context(), job)
	if err != nil || last.Absent() {
		t.Fatal(err)
	}
	next := receive(t, terms, "successor")
	if leader.term.Err() == nil {
		t.Error("two leaders")
	}
	d := next.at.Sub(*leader.member.cells.sent.Load())
	if d < lease {
		t.Errorf("elected %v after the last renewal was sent, with a lease of %v", d, lease)
	}
	return d
}

func status(t *testing.T, on wires, address string) int {
	t.Helper()
	resp, err := on.client(t).Get("http://" + address + DefaultPath)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	_ = resp.Body.Close()
	return resp.StatusCode
}

// A leader that cannot reach the store answers 404 as soon as its lease is over, although its
// process is well.
func leaderWithoutStoreAnswers404(t *testing.T, on wires) {
	terms := make(chan won, 100)
	m := join(t, on, memory.NewPolled(), "a", lease, terms)
	leader := receive(t, terms, "leader")
	if code := status(t, on, m.address); code != http.StatusOK {
		t.Errorf("it leads, and answers %d", code)
	}
	m.cells.Partition()
	if code := status(t, on, m.address); code != http.StatusOK && leader.term.Err() == nil {
		t.Errorf("its lease is valid, and it answers %d", code)
	}
	<-leader.term.LeaseContext().Done()
	answers(t, on, m, http.StatusNotFound) // ledger_test.go checks the time
	m.cells.Heal()
	answers(t, on, m, http.StatusOK)
}

// answers waits until a member answers with this code.
func answers(t *testing.T, on wires, m *member, code int) {
	t.Helper()
	wait.Until(t, fmt.Sprint("it answers ", code), func() bool { return status(t, on, m.address) == code })
}

// A peer that cannot be reached only costs reads.
func electionWithoutReachablePeers(t *testing.T, on wires) {
	cells, terms := memory.NewPolled(), make(chan won, 100)
	a := join(t, on, cells, "a", lease, terms)
	first := receive(t, terms, "leader")
	_ = a.peers.Close() // its server; its election goes on
	join(t, on, cells, "b", lease, terms)
	time.Sleep(5 * lease)
	if err := first.term.Err(); err != nil || len(terms) > 0 {
		t.Errorf("the leader was replaced: %v", err)
	}
	a.cancel()
	if next := receive(t, terms, "successor"); next.member.id != "b" {
		t.Errorf("%s leads", next.member.id)
	}
}

// The kit's elections run in one process, so the pushes come from the swaps themselves.
func TestElections(t *testing.T) {
	electiontest.RunInBubbles(t, func(t testing.TB) drivertest.Harness {
		cells, nowhere := memory.NewPolled(), new(pipenet.Network)
		join := func() driver.Store { return open(t, wires{dial: nowhere.DialContext}, cells, nil) }
		return drivertest.Harness{
			Store: join(), Peer: join(),
			Delete: func(_ context.Context, key string) error { cells.Delete(key); return nil },
			Purge:  func(_ context.Context, key string) error { cells.Purge(key); return nil },
		}
	})
}
