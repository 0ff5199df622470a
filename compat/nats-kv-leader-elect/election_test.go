package election

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/faults"
	"github.com/tenure-go/tenure/driver/memory"
	"github.com/tenure-go/tenure/driver/natskv"
)

// handle is a bucket with only a known TTL.
type handle struct {
	nats.KeyValue
	ttl time.Duration
	err error
}

func (h handle) Bucket() string                       { return "B" }
func (h handle) Status() (nats.KeyValueStatus, error) { return status{ttl: h.ttl}, h.err }

type status struct {
	nats.KeyValueStatus
	ttl time.Duration
}

func (s status) TTL() time.Duration { return s.ttl }

func TestLeaseComesFromTheTTL(t *testing.T) {
	store := WithStore(natskv.FromLegacyKeyValue(nil))
	for _, c := range []struct {
		why   string
		ttl   time.Duration
		opts  []Option
		lease time.Duration
		err   string
	}{
		{"the shortest TTL there was", 30 * time.Second, nil, 10 * time.Second, ""},
		{"the longest TTL there was", time.Hour, nil, 20 * time.Minute, ""},
		{"the demo's", 31 * time.Second, nil, 10333 * time.Millisecond, ""},
		{"over a store", 30 * time.Second, []Option{store}, 10 * time.Second, ""},
		{"the shortest TTL", 1500 * time.Millisecond, nil, 500 * time.Millisecond, ""},
		{"the longest TTL", 3 * time.Hour, nil, time.Hour, ""},
		{"no TTL", 0, nil, 15 * time.Second, ""},
		{"no TTL and a lease", 0, []Option{WithLease(time.Second)}, time.Second, ""},
		{"a shorter lease", time.Minute, []Option{WithLease(5 * time.Second)}, 5 * time.Second, ""},
		{"a lease for a long TTL", 24 * time.Hour, []Option{WithLease(time.Minute)}, time.Minute, ""},
		{"Configure has the last word", 30 * time.Second, []Option{Configure(func(c *tenure.Config) { c.Lease = 12 * time.Second })}, 12 * time.Second, ""},
		{"and leaves it alone", 30 * time.Second, []Option{Configure(func(c *tenure.Config) { c.Lease = 0 })}, 10 * time.Second, ""},
		{"migrating", time.Hour, []Option{Migrating()}, 20 * time.Minute, ""},
		{"too short a TTL", 1400 * time.Millisecond, nil, 0, "nats kv edit B --ttl 30s"},
		{"too long a TTL", 4 * time.Hour, nil, 0, "WithLease"},
		{"too long a lease for the TTL", 30 * time.Second, []Option{WithLease(11 * time.Second)}, 0, "nats kv edit B --ttl 33s"},
		{"a lease below the store's", 30 * time.Second, []Option{WithLease(100 * time.Millisecond)}, 0, "from 500ms to 1h"},
		{"parts of a millisecond", 30 * time.Second, []Option{WithLease(time.Second + 1)}, 0, "whole milliseconds"},
		{"a negative lease", 30 * time.Second, []Option{WithLease(-time.Second)}, 0, "Lease"},
		{"migrating without a TTL", 0, []Option{Migrating()}, 0, "no TTL"},
		{"migrating with a TTL that the old ones refuse", 2 * time.Hour, []Option{Migrating()}, 0, "at most 1h"},
		{"migrating over a store", time.Minute, []Option{Migrating(), store}, 0, "mixed.Migrating"},
	} {
		t.Run(c.why, func(t *testing.T) {
			e, err := NewElection("a", "k", handle{ttl: c.ttl}, c.opts...)
			if c.err != "" {
				if e != nil || err == nil || !strings.Contains(err.Error(), c.err) || !strings.HasPrefix(err.Error(), "election: bucket B: ") {
					t.Errorf("got %v and %v, not an error with %q", e, err, c.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := e.(*Elector).lease; got != c.lease {
				t.Errorf("the lease is %v, not %v", got, c.lease)
			}
		})
	}
}

func TestNewReportsErrors(t *testing.T) {
	unknown := errors.New("no answer")
	if _, err := NewElection("a", "k", handle{err: unknown}); !errors.Is(err, unknown) {
		t.Errorf("a bucket that does not show its TTL: %v", err)
	}
	if _, err := NewElection("a", "k", nil); !errors.Is(err, errNothing) {
		t.Errorf("no bucket: %v", err)
	}
	if _, err := NewElection("a", "no key", handle{ttl: ttl}); err == nil || !strings.Contains(err.Error(), `"no key"`) {
		t.Errorf("a wrong key: %v", err)
	}
	if _, err := NewElection(strings.Repeat("a", 300), "k", handle{ttl: ttl}); err == nil || !strings.Contains(err.Error(), "ID") {
		t.Errorf("a wrong name: %v", err)
	}
	if _, err := NewElection("", "k", handle{ttl: ttl}, OnWon(nil), OnLost(nil), OnCampaign(nil), OnError(nil), WithDebug(nil), WithBackoff(nil)); err != nil {
		t.Errorf("no name, and options of nothing: %v", err)
	}
}

// shape has the names and types of nats-kv-leader-elect. It does not compile if one is missing.
type shape struct {
	newElection  func(name string, key string, bucket nats.KeyValue, opts ...Option) (Election, error)
	onWon        func(func()) Option
	onLost       func(func()) Option
	onCampaign   func(func(State)) Option
	withBackoff  func(Backoff) Option
	withoutSplay func() Option
	withDebug    func(func(format string, a ...interface{})) Option
	election     Election
	backoff      interface{ Duration(n int) time.Duration }
	states       []State
}

var _ = shape{
	NewElection, OnWon, OnLost, OnCampaign, WithBackoff, WithoutSplay, WithDebug, fake{}, Backoff(nil),
	[]State{UnknownState: 0, CandidateState: 1, LeaderState: 2},
}

func TestStatesHaveNames(t *testing.T) {
	for s, want := range []string{"unknown", "candidate", "leader", "State(3)"} {
		if got := State(s).String(); got != want { //nolint:gosec // small
			t.Errorf("state %d is %q, not %q", s, got, want)
		}
	}
}

// fake is an Election as a test of a program may have it.
type fake struct{}

func (fake) Start(context.Context) error { return nil }
func (fake) Stop()                       {}
func (fake) IsLeader() bool              { return false }
func (fake) State() State                { return UnknownState }

func TestStartTwice(t *testing.T) {
	bubble(t, func(t *testing.T, store *memory.Store) {
		a := join(t, "a", store)
		a.mustLead(soon)
		if err := a.Start(t.Context()); !errors.Is(err, errStarted) {
			t.Errorf("a second Start at the same time: %v", err)
		}
		first := a.Token()
		a.Stop()
		a.ended()
		a.Stop()
		go func() { a.done <- a.Start(t.Context()) }()
		a.mustLead(soon)
		if a.Token() <= first {
			t.Errorf("tokens %d, then %d", first, a.Token())
		}
		a.Stop()
		a.ended()
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		if err := a.Start(gone); err != nil {
			t.Errorf("Start with a context that has ended: %v", err)
		}
	})
}

// TestCallbackThatPanics: other goroutines of the program may still work, so the lease is not
// released.
func TestCallbackThatPanics(t *testing.T) {
	bubble(t, func(t *testing.T, store *memory.Store) {
		e, err := New("a", "billing", nil, WithStore(store), WithLease(lease), WithoutSplay(), Configure(inVirtualTime),
			OnWon(func() { panic("at once") }))
		if err != nil {
			t.Fatal(err)
		}
		func() {
			defer func() {
				if got := recover(); got != "at once" {
					t.Errorf("recovered %v", got)
				}
			}()
			_ = e.Start(t.Context())
		}()
		b := join(t, "b", store)
		if took := b.mustLead(2 * lease); took < lease*8/10 {
			t.Errorf("another leads after %v", took)
		}
		if err := e.Start(t.Context()); !errors.Is(err, tenure.ErrTermOpen) {
			t.Errorf("Start once more: %v", err)
		}
	})
}

func TestSplay(t *testing.T) {
	bubble(t, func(t *testing.T, store *memory.Store) {
		var least, most time.Duration = time.Hour, 0
		for range 40 {
			begin := time.Now()
			splayed := func(o *options) { o.noSplay = false }
			a := join(t, "a", store, WithoutSplay(), splayed)
			a.mustLead(splay + soon)
			took := time.Since(begin)
			least, most = min(least, took), max(most, took)
			a.Stop()
			a.ended()
		}
		if least > 2*time.Second || most < 3*time.Second || most > splay+100*time.Millisecond {
			t.Errorf("from %v to %v", least, most)
		}
	})
}

// TestDeniedStoreEndsStart: an error that only an operator can fix ends Start.
func TestDeniedStoreEndsStart(t *testing.T) {
	bubble(t, func(t *testing.T, store *memory.Store) {
		e, err := New("a", "billing", nil, WithStore(denying{store}), WithLease(lease), WithoutSplay(), Configure(inVirtualTime))
		if err != nil {
			t.Fatal(err)
		}
		if err := e.Start(t.Context()); !errors.Is(err, driver.ErrDenied) {
			t.Errorf("got %v", err)
		}
	})
}

type denying struct{ driver.Store }

func (denying) Read(context.Context, string) (driver.Entry, error) {
	return driver.Entry{}, fmt.Errorf("%w: to read", driver.ErrDenied)
}

// TestOnCampaign: OnCampaign is called for each renewal, and for waiting candidates in the old
// interval.
func TestOnCampaign(t *testing.T) {
	bubble(t, func(t *testing.T, store *memory.Store) {
		counts := func() (*map[State]int, Option) {
			n := make(map[State]int)
			return &n, OnCampaign(func(s State) { n[s]++ })
		}
		ofA, countA := counts()
		a := join(t, "a", store, countA)
		a.mustLead(soon)
		ofB, countB := counts()
		join(t, "b", store, countB)
		time.Sleep(9 * lease)
		synctest.Wait()
		if n := (*ofA)[LeaderState]; n < 25 || n > 30 {
			t.Errorf("the leader campaigned %d times in 9 leases", n)
		}
		if n := (*ofB)[CandidateState]; n != 5 { // at the start, and every 2.25 leases
			t.Errorf("the candidate campaigned %d times in 9 leases", n)
		}
	})
}

func TestOnErrorIsForFailuresAlone(t *testing.T) {
	cause := errors.New("cause")
	for kind, want := range map[tenure.EventKind]bool{
		tenure.EventTrouble: true, tenure.EventAlarm: true, tenure.EventLost: true,
		tenure.EventLeaving: false, tenure.EventWaiting: false,
	} {
		if got := isFailure(tenure.Event{Kind: kind, Cause: cause}); got != want {
			t.Errorf("OnError is called for %s: %t, want %t", kind, got, want)
		}
	}
}

// growing is a back-off that starts at a second and doubles. It keeps its arguments.
type growing struct {
	mu    sync.Mutex
	asked []int
}

func (g *growing) Duration(n int) time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.asked = append(g.asked, n)
	return time.Second << min(n, 6)
}

// were returns its arguments since the last call of were.
func (g *growing) were() []int {
	g.mu.Lock()
	defer g.mu.Unlock()
	asked := g.asked
	g.asked = nil
	return asked
}

// TestBackoffSlowsDown: the longer a candidate has waited, the less often it campaigns. After a
// term it starts again.
func TestBackoffSlowsDown(t *testing.T) {
	bubble(t, func(t *testing.T, store *memory.Store) {
		a := join(t, "a", store)
		a.mustLead(soon)
		g := &growing{}
		b := join(t, "b", store, WithBackoff(g))
		time.Sleep(100 * time.Second) // after 1, 3, 7, 15, 31, 63 s
		if got, want := g.were(), []int{0, 1, 2, 3, 4, 5, 6}; !slices.Equal(got, want) {
			t.Errorf("asked for %v, not %v", got, want)
		}
		a.line.Partition()
		took := b.mustLead(2 * time.Minute) // its next campaign is at 127 s
		if at := 27 * time.Second; took < at-time.Second || took > at+time.Second {
			t.Errorf("leads %v after the last one crashed, not %v", took, at)
		}
		g.were()
		store.Delete("billing")
		time.Sleep(lease)
		if asked := g.were(); len(asked) == 0 || asked[0] != 0 {
			t.Errorf("after a term it is asked for %v", asked)
		}
	})
}

// TestBackoffKeepsTheLeader: after an outage of the servers, the last leader leads first.
func TestBackoffKeepsTheLeader(t *testing.T) {
	slow := WithBackoff(UpTo(20 * time.Second))
	kept := 0
	const runs = 20
	for range runs {
		bubble(t, func(t *testing.T, store *memory.Store) {
			outage := faults.New(store, 1, faults.Plan{})
			a := join(t, "a", outage, slow)
			a.mustLead(soon)
			b, c := join(t, "b", outage, slow), join(t, "c", outage, slow)
			watchOver(t, a, b, c)
			time.Sleep(5 * time.Minute)
			outage.Partition()
			time.Sleep(25 * time.Second)
			outage.Heal()
			if leader, _ := leadsWithin(t, time.Minute, a, b, c); leader == a {
				kept++
			}
		})
	}
	t.Logf("in %d of %d outages the leader stayed", kept, runs)
	if kept < runs*8/10 {
		t.Errorf("in %d of %d outages another took over", runs-kept, runs)
	}
}

// TestBackoffHandsOverAtOnce: after a release, no candidate backs off.
func TestBackoffHandsOverAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T, store *memory.Store) {
		slow := WithBackoff(every(time.Hour))
		a := join(t, "a", store, slow)
		a.mustLead(soon)
		b := join(t, "b", store, slow)
		time.Sleep(lease)
		a.Stop()
		if took := b.mustLead(soon); took > 20*time.Millisecond {
			t.Errorf("took %v", took)
		}
		// As nats kv del does. b then releases a record that is gone, and leads again.
		store.Delete("billing")
		time.Sleep(time.Millisecond)
		if took := b.mustLead(soon); took > 600*time.Millisecond {
			t.Errorf("took %v", took)
		}
	})
}

func TestUpToGrowsToItsLimit(t *testing.T) {
	for _, c := range []struct {
		n    int
		want time.Duration
	}{{0, 500 * time.Millisecond}, {1, time.Second}, {8, 4500 * time.Millisecond}, {9, 5 * time.Second}, {1000, 5 * time.Second}} {
		least, most := time.Hour, time.Duration(0)
		for range 1000 {
			d := UpTo(5 * time.Second).Duration(c.n)
			least, most = min(least, d), max(most, d)
		}
		if least < c.want*3/4 || least > c.want*8/10 || most > c.want*5/4 || most < c.want*12/10 {
			t.Errorf("wait %d is from %v to %v", c.n, least, most)
		}
	}
}
