package peer

import (
	"bytes"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/clock"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/faults"
	"github.com/tenure-go/tenure/driver/memory"
	"github.com/tenure-go/tenure/internal/test/wait"
)

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
func writeIsPushedWhenAReadConfirmsIt(t *testing.T, on wires) {
	p := newPair(t, on, nil, nil)
	p.received.await(t, p.version)
	p.faults.Next(faults.Write, faults.LoseAnswer)
	_, err := p.leader.CompareAndSwap(t.Context(), testKey, p.version, encode(t, released(p.name, 1, 2)))
	e, _ := p.leader.Read(t.Context(), testKey)
	if err == nil || e.Version == p.version {
		t.Fatalf("write: %v, version %q", err, e.Version)
	}
	p.received.await(t, e.Version)
}

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
	name := s.Incarnation(forever)
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
	someone := newIdentities().issue(forever)
	s := open(t, wires{}, memory.NewPolled(), nil)
	own := s.Incarnation(forever)
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

// There is one goroutine for each followed key, none for the others, and nothing is
// mixed up.
func manyKeys(t *testing.T, on wires) {
	const n = 20
	cells := memory.NewPolled()
	leader := open(t, on, cells, nil)
	address := serving(t, on, leader)
	name := leader.Incarnation(forever)
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
	for _, h := range received {
		h.stop()
	}
	wait.Until(t, "streams end with their watches", func() bool { return leader.streams() == 0 })
}

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

// late returns a store over cells. Where a test asks for a delay, it lasts a second.
func late(t *testing.T, cells driver.Store) (faults.Store, *Store) {
	f := faults.New(cells, 1, faults.Plan{MinDelay: time.Second})
	return f, open(t, wires{}, f, nil)
}

// leads reports whether a leader is served.
func (s *Store) leads() bool {
	_, p := s.books.look(testKey)
	return p != nil
}

// A leader reads nothing while all is well. So nothing would end its following of the last leader.
func TestLateReadDoesNotMakeALeaderFollow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cells := memory.NewPolled()
		f, s := late(t, cells)
		listenTo(t, s, testKey)
		v := write(t, cells, testKey, held(newIdentities().issue(forever), 1, 1))
		f.Next(faults.Read, faults.DelayAfter)
		go func() { _, _ = s.Read(t.Context(), testKey) }()
		synctest.Wait()
		if _, err := s.CompareAndSwap(t.Context(), testKey, v, encode(t, held(s.Incarnation(forever), 2, 1))); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if got := s.hub.subject[testKey].target; got != (target{}) {
			t.Errorf("the leader follows %+v", got)
		}
		if !s.leads() {
			t.Error("the late read ended its leadership here")
		}
	})
}

// A renewal is applied and its answer is in flight. Another read overtakes the answer.
func TestReadThatOvertakesTheAnswerToARenewal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, s := late(t, memory.NewPolled())
		name := s.Incarnation(forever)
		v := write(t, s, testKey, held(name, 1, 1))
		renew := func(from driver.Version, n uint64) {
			if _, err := s.CompareAndSwap(t.Context(), testKey, from, encode(t, held(name, 1, n))); err != nil {
				t.Error(err)
			}
		}
		f.Next(faults.Write, faults.DelayAfter)
		go renew(v, 2)
		synctest.Wait()
		e, err := s.Read(t.Context(), testKey) // such as a second election's of this process
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if !s.leads() {
			t.Error("the leader is not served after a read overtook its renewal's answer")
		}
		if renew(e.Version, 3); !s.leads() {
			t.Error("nor after its next renewal")
		}
	})
}

// A leader answers for exactly as long as its term by the election's own account, with the margin
// and the clock of the election at this moment.
func TestServedForAsLongAsTheTerm(t *testing.T) {
	drift := func(c *tenure.Config) { c.Tuning.Drift = 0.1 }
	stop := func(c *tenure.Config) { c.StopWithin = 2 * time.Second }
	shorter := func(c *tenure.Config) { c.Lease = 2 * time.Second }
	for name, c := range map[string]struct {
		before, later func(*tenure.Config)
		settle        time.Duration // from the change to the end of renewals
	}{
		"the default margin":                       {},
		"a margin that was set":                    {before: func(c *tenure.Config) { drift(c); stop(c) }},
		"a clock that runs fast":                   {before: func(c *tenure.Config) { c.Clock = fast{} }},
		"a larger margin, not yet in force":        {later: stop},
		"a larger margin":                          {later: stop, settle: time.Second},
		"a larger drift, at the next renewal":      {later: drift, settle: time.Second},
		"a smaller margin, not yet in force":       {before: stop, later: func(c *tenure.Config) { c.StopWithin = 0 }},
		"a smaller margin":                         {before: stop, later: func(c *tenure.Config) { c.StopWithin = 0 }, settle: time.Second},
		"a shorter lease":                          {later: shorter, settle: time.Second},
		"a shorter lease in an unanswered renewal": {later: shorter},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cfg := tenure.Config{
					ID: "a", Lease: 4 * time.Second, Tuning: tenure.Tuning{Renew: 500 * time.Millisecond}, Clock: clock.Standard{},
				}
				if c.before != nil {
					c.before(&cfg)
				}
				servedForAsLongAsTheTerm(t, cfg, c.later, c.settle)
			})
		})
	}
}

func servedForAsLongAsTheTerm(t *testing.T, cfg tenure.Config, later func(*tenure.Config), settle time.Duration) {
	f := faults.New(memory.NewPolled(), 1, faults.Plan{})
	s := open(t, wires{}, f, nil)
	e, err := tenure.New(s, testKey, cfg)
	if err != nil {
		t.Fatal(err)
	}
	term, err := e.Campaign(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Second + 100*time.Millisecond)
	if settle == 0 {
		f.Partition()
	}
	if later != nil {
		if err := e.Reconfigure(later); err != nil {
			t.Fatal(err)
		}
	}
	time.Sleep(settle)
	f.Partition()
	for step, begun := 10*time.Millisecond, time.Now(); term.Remaining() > 0; time.Sleep(step) {
		if !s.leads() {
			t.Errorf("Path answers 404 after %v, while the term goes on for %v", time.Since(begun), term.Remaining())
			break
		}
		if time.Since(begun) > 4*time.Second {
			t.Fatal("the term does not end")
		}
	}
	for range 500 {
		if s.leads() {
			t.Error("Path answers 200 while the term is over by the election's own account")
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	_ = term.Resign(t.Context()) // it is over
}

// fast is a clock that runs at 1.25 times the rate of the system's.
type fast struct{ clock.Standard }

func (fast) Now() clock.Reading {
	r := clock.Standard{}.Now()
	for _, d := range []*time.Duration{&r.Mono, &r.Raw, &r.Boot} {
		*d += *d / 4
	}
	return r
}

func (fast) Drift() float64 { return 0.3 }
