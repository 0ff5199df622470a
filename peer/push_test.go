package peer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/clock"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/memory"
	"github.com/tenure-go/tenure/internal/test/wait"
)

func TestFollowerReceivesEachWrite(t *testing.T) { overPipes(t, followerReceivesEachWrite) }

func followerReceivesEachWrite(t *testing.T, on wires) {
	p := newPair(t, on, nil, nil)
	e := p.received.await(t, p.version)
	want, err := p.cells.Read(t.Context(), testKey)
	if err != nil || !bytes.Equal(e.Value, want.Value) || e.Floor != 1 || e.Pristine {
		t.Errorf("pushed %+v, the store holds %+v, %v", e, want, err)
	}
	for n := uint64(2); n < 6; n++ {
		p.received.await(t, p.write(t, held(p.name, 1, n)))
	}
	p.received.await(t, p.write(t, released(p.name, 1, 6)))
	wait.Until(t, "the stream ends with the release", func() bool { return p.leader.streams() == 0 })
}

// The same leader may be elected again, with the same address and incarnation.
func TestFollowerReturnsToALeaderThatReleased(t *testing.T) {
	overPipes(t, followerReturnsToALeaderThatReleased)
}

func followerReturnsToALeaderThatReleased(t *testing.T, on wires) {
	p := newPair(t, on, nil, nil)
	p.received.await(t, p.version)
	p.received.await(t, p.write(t, released(p.name, 1, 2)))
	p.write(t, held(p.name, 2, 1))
	if _, err := p.follower.Read(t.Context(), testKey); err != nil {
		t.Fatal(err)
	}
	p.received.await(t, p.write(t, held(p.name, 2, 2)))
}

// A shutdown is a release, and then Close. A stream may notice either of them first.
func TestReleaseIsPushedBeforeClose(t *testing.T) { overPipes(t, releaseIsPushedBeforeClose) }

func releaseIsPushedBeforeClose(t *testing.T, on wires) {
	for range 20 {
		p := newPair(t, on, nil, nil)
		p.received.await(t, p.version)
		v := p.write(t, released(p.name, 1, 2))
		if err := p.leader.Close(); err != nil {
			t.Error(err)
		}
		p.received.await(t, v)
	}
}

// A write with a lost answer is found by the election's next read, and pushed then.
func TestWriteIsPushedWhenAReadConfirmsIt(t *testing.T) {
	overPipes(t, writeIsPushedWhenAReadConfirmsIt)
}

func writeIsPushedWhenAReadConfirmsIt(t *testing.T, on wires) {
	cells := &unreliable{Polled: memory.NewPolled()}
	leader := open(t, on, cells, nil)
	address := serving(t, on, leader)
	r := held(leader.Incarnation(), 1, 1)
	r.LeaderAddr = address
	first := write(t, leader, testKey, r)
	follower := open(t, on, cells, nil)
	received := listenTo(t, follower, testKey)
	_, _ = follower.Read(t.Context(), testKey)
	received.await(t, first)
	r = released(r.Incarnation, 1, 2)
	cells.next(answerLost)
	_, err := leader.CompareAndSwap(t.Context(), testKey, first, encode(t, r))
	e, _ := leader.Read(t.Context(), testKey)
	if err == nil || e.Version == first {
		t.Fatalf("write: %v, version %q", err, e.Version)
	}
	received.await(t, e.Version)
}

func TestFollowerComesBackAfterAnOutage(t *testing.T) { overPipes(t, followerComesBackAfterAnOutage) }

func followerComesBackAfterAnOutage(t *testing.T, on wires) {
	p := newPair(t, on, nil, nil)
	p.received.await(t, p.version)
	_ = p.leader.Close()
	p.said.until(t, testKey)
	// The same leader at the same address, as after a network failure.
	again := open(t, on, p.cells, nil)
	again.keys = p.leader.keys
	again.books = p.leader.books
	wait.Until(t, "the address is free", func() bool {
		l, err := on.listen("tcp", p.address)
		if err != nil {
			return false
		}
		go func() { _ = again.Serve(l) }()
		return true
	})
	p.said.until(t, "")
	p.received.await(t, write(t, again, testKey, held(p.name, 1, 2)))
}

func TestWatchesInTheLeadersOwnProcess(t *testing.T) {
	s := open(t, wires{}, memory.NewPolled(), nil)
	name := s.Incarnation()
	a, b := listenTo(t, s, testKey), listenTo(t, s, testKey)
	other := listenTo(t, s, testKey+"2")
	for n := uint64(1); n < 4; n++ {
		v := write(t, s, testKey, held(name, 1, n))
		e := a.await(t, v)
		if e.Floor != 1 {
			t.Errorf("floor %d", e.Floor)
		}
		copy(e.Value, "XXXX")
		if e := b.await(t, v); e.Value[0] != '{' {
			t.Error("two watches share a value")
		}
	}
	a.stop()
	a.stop()
	v := write(t, s, testKey, released(name, 1, 4))
	b.await(t, v)
	if len(a.entries) > 0 || len(other.entries) > 0 {
		t.Error("a watch received a push after stop, or of another key")
	}
	if s.hub.subject[testKey].run != nil {
		t.Error("the process dials itself")
	}
}

func TestStopFromSee(t *testing.T) { overPipes(t, stopFromSee) }

func stopFromSee(t *testing.T, on wires) {
	p := newPair(t, on, nil, nil)
	stopped := make(chan struct{})
	var stop func()
	var mu sync.Mutex
	mu.Lock()
	stop, err := p.follower.Watch(t.Context(), testKey, func(driver.Entry) {
		mu.Lock()
		defer mu.Unlock()
		stop()
		select {
		case <-stopped:
		default:
			close(stopped)
		}
	})
	mu.Unlock()
	if err != nil {
		t.Fatal(err)
	}
	p.write(t, held(p.name, 1, 2))
	select {
	case <-stopped:
	case <-wait.Context(t).Done():
		t.Fatal("stop does not return")
	}
}

// A follower dials only for a leader that it can follow, and only for a watched key.
func TestRecordsWithoutAFollowableLeader(t *testing.T) {
	someone := newIdentities().issue()
	s := open(t, wires{}, memory.NewPolled(), nil)
	own := s.Incarnation()
	listenTo(t, s, testKey)
	silent := held(someone, 1, 1)
	silent.LeaderAddr = ""
	for name, value := range map[string][]byte{
		"nothing":             nil,
		"no address":          encode(t, silent),
		"released":            encode(t, released(someone, 1, 1)),
		"no peer":             encode(t, held("0123456789abcdef", 1, 1)),
		"this very process":   encode(t, held(own, 1, 1)),
		"no record of ours":   []byte(`{"leaderID":"a","leaderAddr":"127.0.0.1:1","lastUpdated":"2020-01-01T00:00:00Z"}`),
		"nothing like a key":  encode(t, held(strings.Repeat("=", 43), 1, 1)),
		"a key with trailing": encode(t, held(someone+"AAAA", 1, 1)),
	} {
		if got := s.targetOf(decode(driver.Entry{Value: value})); got != (target{}) {
			t.Errorf("%s: %+v would be dialled", name, got)
		}
	}
	if got := s.targetOf(decode(driver.Entry{Value: encode(t, held(someone, 1, 1))})); got.incarnation != someone {
		t.Errorf("a peer would not be dialled: %+v", got)
	}
}

// TestManyKeys: there is one goroutine for each followed key, none for the others, and nothing is
// mixed up.
func TestManyKeys(t *testing.T) { overPipes(t, manyKeys) }

func manyKeys(t *testing.T, on wires) {
	const n = 20
	cells := memory.NewPolled()
	leader := open(t, on, cells, nil)
	address := serving(t, on, leader)
	name := leader.Incarnation()
	follower := open(t, on, cells, nil)
	before := runtime.NumGoroutine()
	for i := range 500 {
		listenTo(t, follower, fmt.Sprint("idle", i))
	}
	if after := runtime.NumGoroutine(); after > before+10 {
		t.Errorf("%d more goroutines for watches of keys without a leader", after-before)
	}
	received := map[string]*receiver{}
	for i := range n {
		key := fmt.Sprint("job", i)
		r := held(name, uint64(i)+1, 1)
		r.LeaderAddr = address
		v := write(t, leader, key, r)
		received[key] = listenTo(t, follower, key)
		_, _ = follower.Read(t.Context(), key)
		if e := received[key].await(t, v); e.Floor != uint64(i)+1 {
			t.Errorf("%s: floor %d", key, e.Floor)
		}
	}
	for key, h := range received {
		h.stop()
		_ = key
	}
	wait.Until(t, "streams end with their watches", func() bool { return leader.streams() == 0 })
}

func TestCloseLeavesNothing(t *testing.T) { overPipes(t, closeLeavesNothing) }

func closeLeavesNothing(t *testing.T, on wires) {
	before := runtime.NumGoroutine()
	p := newPair(t, on, nil, nil)
	p.received.await(t, p.version)
	for range 2 {
		_ = p.follower.Close()
		_ = p.leader.Close()
	}
	wait.Until(t, "all goroutines have ended", func() bool { return runtime.NumGoroutine() <= before })
	if _, err := p.follower.Watch(t.Context(), testKey, nil); !errors.Is(err, errClosed) {
		t.Errorf("watch after Close: %v", err)
	}
	if err := p.leader.Serve(on.free(t)); !errors.Is(err, errClosed) {
		t.Errorf("serve after Close: %v", err)
	}
	p.write(t, held(p.name, 1, 2)) // as a leader must that releases late
}

// A store is closed while its watches receive pushes, stop and start.
func TestCloseDuringPushes(t *testing.T) { overPipes(t, closeDuringPushes) }

func closeDuringPushes(t *testing.T, on wires) {
	p := newPair(t, on, nil, nil)
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 50 {
				if stop, err := p.follower.Watch(t.Context(), testKey, func(driver.Entry) {}); err == nil {
					_, _ = p.follower.Read(t.Context(), testKey)
					stop()
				}
			}
		})
	}
	all.Go(func() {
		for n := uint64(2); n < 50; n++ {
			p.write(t, held(p.name, 1, n))
		}
	})
	_ = p.follower.Close()
	all.Wait()
}

// heldBack is a store whose reads are answered late.
type heldBack struct {
	*memory.Polled
	read, answer chan struct{}
}

func (h *heldBack) Read(ctx context.Context, key string) (driver.Entry, error) {
	e, err := h.Polled.Read(ctx, key)
	if h.read != nil {
		h.read <- struct{}{}
		<-h.answer
	}
	return e, err
}

// A leader reads nothing while all is well. So nothing would end its following of the last leader.
func TestLateReadDoesNotMakeALeaderFollow(t *testing.T) {
	cells := &heldBack{Polled: memory.NewPolled()}
	s := open(t, wires{}, cells, nil)
	listenTo(t, s, testKey)
	v := write(t, cells.Polled, testKey, held(newIdentities().issue(), 1, 1))
	cells.read, cells.answer = make(chan struct{}), make(chan struct{})
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = s.Read(t.Context(), testKey)
	}()
	<-cells.read
	if _, err := s.CompareAndSwap(t.Context(), testKey, v, encode(t, held(s.Incarnation(), 2, 1))); err != nil {
		t.Fatal(err)
	}
	close(cells.answer)
	<-done
	if got := s.hub.subject[testKey].target; got != (target{}) {
		t.Errorf("the leader follows %+v", got)
	}
	if _, p := s.books.look(testKey); p == nil {
		t.Error("the late read ended its leadership here")
	}
}

// slowAnswer applies a write and delays its answer until the test releases it.
type slowAnswer struct {
	*memory.Polled
	hold    chan struct{}
	applied chan struct{}
}

func (s *slowAnswer) CompareAndSwap(ctx context.Context, key string, prev driver.Version, value []byte) (driver.Version, error) {
	v, err := s.Polled.CompareAndSwap(ctx, key, prev, value)
	if s.hold != nil {
		close(s.applied)
		<-s.hold
	}
	return v, err
}

// A renewal is applied and its answer is in flight. Another read overtakes the answer.
func TestReadThatOvertakesTheAnswerToARenewal(t *testing.T) {
	cells := &slowAnswer{Polled: memory.NewPolled()}
	s := open(t, wires{}, cells, nil)
	name := s.Incarnation()
	v1 := write(t, s, testKey, held(name, 1, 1))
	cells.hold, cells.applied = make(chan struct{}), make(chan struct{})
	done := make(chan struct{})
	go func() {
		defer close(done)
		if _, err := s.CompareAndSwap(t.Context(), testKey, v1, encode(t, held(name, 1, 2))); err != nil {
			t.Error(err)
		}
	}()
	<-cells.applied
	e, err := s.Read(t.Context(), testKey) // such as a second election's of this process
	if err != nil {
		t.Fatal(err)
	}
	close(cells.hold)
	<-done
	cells.hold = nil
	if _, p := s.books.look(testKey); p == nil {
		t.Error("the leader is not served after a read overtook its renewal's answer")
	}
	if _, err := s.CompareAndSwap(t.Context(), testKey, e.Version, encode(t, held(name, 1, 3))); err != nil {
		t.Fatal(err)
	}
	if _, p := s.books.look(testKey); p == nil {
		t.Error("nor after its next renewal")
	}
}

// An election may keep back more than the defaults. Margin declares it.
func TestNothingIsServedAfterTheTermsOwnDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		down := &downable{Polled: memory.NewPolled()}
		cfg := tenure.Config{
			ID: "a", Lease: 4 * time.Second, Tuning: tenure.Tuning{Renew: 500 * time.Millisecond, Drift: 0.1}, StopWithin: 2 * time.Second,
			Clock: clock.Standard{},
		}
		s := open(t, wires{}, down, func(c *Config) { c.Margin, c.Clock = cfg.Margin(), cfg.Clock })
		e, err := tenure.New(s, testKey, cfg)
		if err != nil {
			t.Fatal(err)
		}
		term, err := e.Campaign(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		down.down.Store(true)
		<-term.Context().Done()
		if _, p := s.books.look(testKey); p != nil {
			t.Error("Path answers 200 while the term is over by the election's own account")
		}
		_ = term.Resign(t.Context()) // it is over
	})
}

type downable struct {
	*memory.Polled
	down atomic.Bool
}

func (d *downable) CompareAndSwap(ctx context.Context, key string, prev driver.Version, value []byte) (driver.Version, error) {
	if d.down.Load() {
		return "", context.DeadlineExceeded
	}
	return d.Polled.CompareAndSwap(ctx, key, prev, value)
}
