package neli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/faults"
	"github.com/tenure-go/tenure/driver/memory"
	"github.com/tenure-go/tenure/timing"
)

func TestLeadershipRotates(t *testing.T) {
	bubble(t, func(t *testing.T, store driver.Store) {
		a := enter(t, "a", store)
		a.then(func(e Event) {
			if !a.IsLeader() || a.Token() == 0 || a.Term() == nil {
				t.Errorf("within %v: leader %v, token %d", e, a.IsLeader(), a.Token())
			}
		})
		a.mustLead(time.Minute)
		a.expect(LeaderAcquired{})
		first := a.Token()
		b := enter(t, "b", store, other)
		b.idle(time.Minute)
		a.then(func(e Event) {
			if a.IsLeader() || a.Token() != first {
				t.Errorf("within %v: leader %v, token %d", e, a.IsLeader(), a.Token())
			}
		})
		a.ground.nominee.set(false)
		b.ground.nominee.set(true)
		if !a.IsLeader() {
			t.Error("a holds the lease and got no event, but does not lead")
		}
		b.idle(3 * time.Minute)
		if a.expect(); !a.IsLeader() {
			t.Error("a holds the lease and got no event, but does not lead")
		}
		a.idle(time.Millisecond)
		a.expect(LeaderRevoked{})
		b.mustLead(time.Second)
		b.expect(LeaderAcquired{})
		if b.Token() <= first || a.Token() != 0 {
			t.Errorf("tokens %d, then %d; a has %d", first, b.Token(), a.Token())
		}
		b.end()
		b.expect(LeaderRevoked{})
		a.idle(time.Minute)
		a.end()
		a.expect()
	})
}

// TestNoWorkBeforeTheBarrierReturns: before the barrier returns from LeaderAcquired, no call starts
// work.
func TestNoWorkBeforeTheBarrierReturns(t *testing.T) {
	bubble(t, func(t *testing.T, store driver.Store) {
		a := enter(t, "a", store)
		called, prepared := make(chan struct{}), make(chan struct{})
		a.then(func(Event) {
			close(called)
			<-prepared
		})
		first := make(chan bool)
		go func() {
			leads, _ := a.Pulse(time.Minute)
			first <- leads
		}()
		<-called
		a.idle(20 * time.Second)
		if !a.IsLeader() {
			t.Error("is no leader while it prepares")
		}
		a.then(nil)
		close(prepared)
		a.mustLead(time.Second)
		if !<-first {
			t.Error("after LeaderAcquired it does not lead")
		}
		a.end()
	})
}

// TestRevokedBarrierMayBeSlow: no other candidate is elected before the barrier has returned,
// however long others wait.
func TestRevokedBarrierMayBeSlow(t *testing.T) {
	bubble(t, func(t *testing.T, store driver.Store) {
		a, b := enter(t, "a", store, owner), enter(t, "b", store, other)
		a.mustLead(time.Minute)
		drained := make(chan struct{})
		a.then(func(Event) { <-drained })
		a.ground.nominee.set(false)
		b.ground.nominee.set(true)
		go func() { _, _ = a.Pulse(time.Second) }()
		b.idle(4 * time.Minute)
		if a.Token() == 0 {
			t.Error("the lease is gone while the work drains")
		}
		close(drained)
		b.mustLead(time.Second)
		b.end()
		a.end()
	})
}

// TestRevokedBarrierIsBounded: a barrier that does not return within max.poll.interval.ms does not
// prevent another leader.
func TestRevokedBarrierIsBounded(t *testing.T) {
	bubble(t, func(t *testing.T, store driver.Store) {
		a, b := enter(t, "a", store, owner), enter(t, "b", store, other)
		a.mustLead(time.Minute)
		stuck := make(chan struct{})
		a.then(func(Event) { <-stuck })
		term := a.Term()
		a.ground.nominee.set(false)
		b.ground.nominee.set(true)
		done := make(chan struct{})
		go func() {
			defer close(done)
			_, _ = a.Pulse(time.Second)
		}()
		began := time.Now()
		b.mustLead(6 * time.Minute)
		if took := time.Since(began); took < 5*time.Minute || term.Err() == nil {
			t.Errorf("b leads after %v, and a has %v", took, term.Err())
		}
		close(stuck)
		<-done
		a.expect(LeaderAcquired{}, LeaderRevoked{})
		b.end()
		a.end()
	})
}

func owner(_ *Config, s *stub) { s.nominee.is = true }
func other(_ *Config, s *stub) { s.nominee.is = false }

// TestFencedByTheClock: a leader that is cut off stops leading within HeartbeatTimeout without any
// Pulse. The next Pulse fences it. It leads again only in another term.
func TestFencedByTheClock(t *testing.T) {
	bubble(t, func(t *testing.T, store driver.Store) {
		a := enter(t, "a", store)
		a.mustLead(time.Minute)
		first, term := a.Token(), a.Term()
		a.line.Partition()
		began := time.Now()
		for a.IsLeader() {
			if time.Since(began) > DefaultHeartbeatTimeout {
				t.Fatal("leads after HeartbeatTimeout")
			}
			time.Sleep(10 * time.Millisecond)
		}
		if took := time.Since(began); took < DefaultHeartbeatTimeout/2 || a.Token() != 0 || term.LeaseContext().Err() == nil {
			t.Errorf("fenced after %v, with token %d", took, a.Token())
		}
		a.expect(LeaderAcquired{})
		b := enter(t, "b", store)
		b.mustLead(2 * DefaultHeartbeatTimeout)
		b.ground.nominee.set(false)
		b.idle(time.Millisecond) // and has released
		a.line.Heal()
		time.Sleep(time.Minute)
		if a.IsLeader() || a.Token() != 0 || a.Term() != term {
			t.Error("leads again before it got LeaderFenced")
		}
		a.mustLead(time.Minute)
		a.expect(LeaderFenced{}, LeaderAcquired{})
		if a.Token() <= first+1 {
			t.Errorf("leads again with token %d after %d and b's", a.Token(), first)
		}
		a.end()
		b.end()
	})
}

// TestLeaderThatDoesNotPulseIsReplaced: a loop that hangs loses its place after
// max.poll.interval.ms, without a release. It can come back.
func TestLeaderThatDoesNotPulseIsReplaced(t *testing.T) {
	bubble(t, func(t *testing.T, store driver.Store) {
		short := func(c *Config, _ *stub) { c.KafkaConfig = KafkaConfigMap{"max.poll.interval.ms": 60000} }
		a, b := enter(t, "a", store, short), enter(t, "b", store, short, other)
		a.mustLead(time.Minute)
		first, began := a.Token(), time.Now()
		for !a.ground.nominee.gone() && time.Since(began) < 2*time.Minute {
			b.idle(time.Second)
		}
		synctest.Wait()
		if silent := time.Since(began); silent < time.Minute || silent > 62*time.Second || a.IsLeader() || a.Token() != 0 {
			t.Errorf("left the group after %v; leader %v", silent, a.IsLeader())
		}
		b.ground.nominee.set(true)
		if leads, _ := b.Pulse(time.Second); leads {
			t.Error("the lease was released under work that may go on")
		}
		b.mustLead(6 * time.Second)
		time.Sleep(30 * time.Second)
		a.expect(LeaderAcquired{})
		if a.ground.nominee.joined != 1 {
			t.Error("joined the group again without a Pulse")
		}
		a.idle(time.Second)
		a.expect(LeaderFenced{})
		b.end()
		a.mustLead(10 * time.Second)
		if a.Token() <= first+1 {
			t.Errorf("token %d after %d", a.Token(), first)
		}
		a.end()
	})
}

// TestElectionWithoutPulses: an instance without Pulses gets no events and does not count as
// leader. In the end others lead.
func TestElectionWithoutPulses(t *testing.T) {
	bubble(t, func(t *testing.T, store driver.Store) {
		a, b := enter(t, "a", store), enter(t, "b", store, other)
		time.Sleep(time.Minute)
		if a.IsLeader() || a.Token() != 0 || a.Term() != nil {
			t.Error("leads without an event")
		}
		b.idle(4*time.Minute + time.Second)
		b.ground.nominee.set(true)
		b.mustLead(time.Second)
		b.end()
		a.end()
		a.expect()
	})
}

func TestBackground(t *testing.T) {
	bubble(t, func(t *testing.T, store driver.Store) {
		a := enter(t, "a", store)
		if _, err := a.Background(nil); err == nil {
			t.Error("a background without a task")
		}
		var runs atomic.Int64
		var within atomic.Bool
		p, err := a.Background(func() {
			within.Store(true)
			defer within.Store(false)
			runs.Add(1)
			time.Sleep(time.Second)
		})
		if err != nil {
			t.Fatal(err)
		}
		a.then(func(e Event) {
			if within.Load() {
				t.Errorf("%v within a task", e)
			}
		})
		time.Sleep(time.Minute + 500*time.Millisecond)
		time.AfterFunc(time.Millisecond, func() {
			if !within.Load() || a.State() != Closing || a.IsLeader() || a.Token() == 0 {
				t.Errorf("a task is waited for: %v; %v, leader %v, token %d", within.Load(), a.State(), a.IsLeader(), a.Token())
			}
		})
		if n := runs.Load(); n < 50 || n > 61 {
			t.Errorf("%d tasks in a minute", n)
		}
		a.end()
		a.expect(LeaderAcquired{}, LeaderRevoked{})
		if err := p.Await(); err != nil || p.Error() != nil {
			t.Error(err)
		}
	})
}

// TestLateTaskDoesNotRun: the answer of Pulse may be outdated when the task would start.
func TestLateTaskDoesNotRun(t *testing.T) {
	bubble(t, func(t *testing.T, store driver.Store) {
		a, ran := enter(t, "a", store), false
		task := func() { ran = true }
		a.during(task)
		a.mustLead(time.Minute)
		if ran {
			t.Error("a task runs before anybody leads")
		}
		if a.during(task); !ran {
			t.Error("a task does not run")
		}
		ran = false
		a.ground.nominee.set(false)
		a.during(task)
		a.end()
		if a.during(task); ran {
			t.Error("a task runs after the end was asked for")
		}
	})
}

// TestConcurrentPulses: of several Pulses only one gets events at a time. They wait for a task of
// Background.
func TestConcurrentPulses(t *testing.T) {
	bubble(t, func(t *testing.T, store driver.Store) {
		a := enter(t, "a", store)
		var within atomic.Int64
		task := func() {
			within.Add(1)
			defer within.Add(-1)
			time.Sleep(3 * time.Second)
		}
		for range 3 {
			if _, err := a.Background(task); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
		}
		var calls atomic.Int64
		a.then(func(e Event) {
			if within.Load() > 0 || calls.Add(1) > 1 {
				t.Errorf("%v: %d tasks are running", e, within.Load())
			}
			time.Sleep(time.Second)
			calls.Add(-1)
		})
		a.expect(LeaderAcquired{})
		for range 20 {
			a.ground.nominee.set(false)
			a.idle(4 * time.Second)
			a.expect(LeaderRevoked{})
			a.ground.nominee.set(true)
			a.mustLead(10 * time.Second)
			a.expect(LeaderAcquired{})
			time.Sleep(5 * time.Second)
			if within.Load() == 0 {
				t.Error("no task runs")
			}
			if a.events(); t.Failed() {
				return
			}
		}
		a.end()
	})
}

// TestCloseFromACallback: Close returns after its limit within the barrier or a task, and closing
// goes on.
func TestCloseFromACallback(t *testing.T) {
	bubble(t, func(t *testing.T, store driver.Store) {
		a := enter(t, "a", store)
		var got error
		p, err := a.Background(func() { got = a.Close() })
		if err != nil {
			t.Fatal(err)
		}
		a.Await()
		if got == nil || p.Await() != nil {
			t.Errorf("Close within a task: %v", got)
		}
		a.expect(LeaderAcquired{}, LeaderRevoked{})
		for _, where := range []Event{LeaderAcquired{}, LeaderRevoked{}, LeaderFenced{}} {
			b := enter(t, "b", store)
			b.then(func(e Event) {
				if e == where {
					_ = b.Close()
				}
			})
			b.mustEndAt(where)
			b.Await()
			b.events()
		}
	})
}

func (p *play) mustEndAt(where Event) {
	p.t.Helper()
	_, _ = p.Pulse(time.Minute)
	switch where.(type) {
	case LeaderRevoked:
		p.ground.nominee.set(false)
	case LeaderFenced:
		p.line.Partition()
		time.Sleep(10 * time.Second)
	}
	if leads, err := p.Pulse(time.Minute); !errors.Is(err, ErrNonLivePulse) || leads {
		p.t.Errorf("after Close in %v: %v, %v", where, leads, err)
	}
}

func TestFatal(t *testing.T) {
	bubble(t, func(t *testing.T, store driver.Store) {
		denied := errors.New("no right")
		a := enter(t, "a", store, func(_ *Config, s *stub) { s.opens = []error{errNetwork, errNetwork, denied} })
		began := time.Now()
		p, err := a.Background(func() { t.Error("leads") })
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Await(); !errors.Is(err, denied) || time.Since(began) < 200*time.Millisecond {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
		if leads, err := a.Pulse(time.Hour); leads || !errors.Is(err, denied) || a.State() != Live {
			t.Errorf("then: %v, %v", leads, err)
		}
		if err := a.Close(); err != nil {
			t.Error(err)
		}
		if _, err := a.Pulse(0); !errors.Is(err, ErrNonLivePulse) {
			t.Errorf("after Close: %v", err)
		}
	})
}

func TestLeaderOfAnotherGroup(t *testing.T) {
	bubble(t, func(t *testing.T, store driver.Store) {
		two := errors.New("two groups")
		a := enter(t, "a", store)
		a.mustLead(time.Minute)
		b := enter(t, "b", store, func(_ *Config, s *stub) { s.wrong = two })
		if _, err := b.Pulse(time.Minute); !errors.Is(err, two) {
			t.Errorf("beside another group: %v", err)
		}
		b.end()
		a.end()
	})
}

// TestPrecedence: with it, a group without an owner still gets a leader.
func TestPrecedence(t *testing.T) {
	bubble(t, func(t *testing.T, store driver.Store) {
		strict := enter(t, "strict", store, other)
		strict.idle(10 * time.Minute)
		mild := enter(t, "mild", store, other, func(c *Config, _ *stub) { c.Precedence = Duration(20 * time.Second) })
		mild.idle(15 * time.Second)
		mild.mustLead(time.Minute)
		mild.end()
		strict.end()
	})
}

// TestBarrierThatPanics: after a panic of the barrier the instance can be closed.
func TestBarrierThatPanics(t *testing.T) {
	bubble(t, func(t *testing.T, store driver.Store) {
		a := enter(t, "a", store)
		a.then(func(Event) { panic("mine") })
		func() {
			defer func() {
				if recover() != "mine" {
					t.Error("Pulse does not return it")
				}
			}()
			_, _ = a.Pulse(time.Minute)
		}()
		a.then(nil)
		a.mustLead(time.Second)
		a.end()
		a.expect(LeaderAcquired{}, LeaderRevoked{})
	})
}

func TestConfigureOverridesOtherSettings(t *testing.T) {
	bubble(t, func(t *testing.T, store driver.Store) {
		var seen tenure.Config
		var events atomic.Int64
		a := enter(t, "a", store, func(c *Config, _ *stub) {
			c.Configure = func(t *tenure.Config) {
				seen = *t
				t.Address = "here:1"
				t.Metadata = map[string]string{"zone": "a"}
				t.OnEvent = func(tenure.Event) { events.Add(1) }
			}
		})
		b := enter(t, "b", store, other)
		a.mustLead(time.Minute)
		synctest.Wait()
		if usable := seen.Lease - timing.Margin(seen); usable > DefaultHeartbeatTimeout || usable < DefaultHeartbeatTimeout-2*time.Millisecond {
			t.Errorf("a lease of %v, of which %v are used", seen.Lease, usable)
		}
		if seen.FinishWithin != 5*time.Minute || !seen.Nomination.Only || seen.ID != "a" || events.Load() == 0 {
			t.Errorf("%+v; %d events", seen, events.Load())
		}
		a.end()
		b.end()
	})
}

// nominee is a membership whose nomination the test sets.
type nominee struct {
	mu     sync.Mutex
	is     bool
	sees   []func(bool)
	left   bool
	joined int
}

func (n *nominee) Nominate(see func(bool)) (stop func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.sees = append(n.sees, see)
	is := n.is
	go see(is)
	return func() {}
}

// set waits until the election has received it.
func (n *nominee) set(is bool) {
	n.mu.Lock()
	n.is = is
	sees := slices.Clone(n.sees)
	n.mu.Unlock()
	for _, see := range sees {
		see(is)
	}
	synctest.Wait()
}

func (n *nominee) Close() error {
	n.mu.Lock()
	n.left = true
	n.mu.Unlock()
	return nil
}

func (n *nominee) gone() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.left
}

// stub is the base of electors in a test: a store in memory, and nominations set by the test.
type stub struct {
	store   driver.Store
	nominee *nominee
	opens   []error // the errors of open, one after the other, before it succeeds
	wrong   error   // the error of check
	closed  bool
}

var errNetwork = fmt.Errorf("no broker: %w", context.DeadlineExceeded)

func (s *stub) open(context.Context) (driver.Store, error) {
	if len(s.opens) == 0 {
		return s.store, nil
	}
	err := s.opens[0]
	s.opens = s.opens[1:]
	return nil, err
}

func (s *stub) join(context.Context) (member, error) {
	s.nominee.mu.Lock()
	defer s.nominee.mu.Unlock()
	s.nominee.left = false
	s.nominee.sees = nil
	s.nominee.joined++
	return s.nominee, nil
}

func (s *stub) metadata() map[string]string { return map[string]string{"kafka.group": "g"} }

func (s *stub) check(tenure.Leader) error { return s.wrong }
func (s *stub) passing(err error) bool    { return errors.Is(err, context.DeadlineExceeded) }

func (s *stub) close() error {
	s.closed = true
	return nil
}

// play is one process of a test.
type play struct {
	*elector
	t      *testing.T
	ground *stub
	line   faults.Store

	mu    sync.Mutex
	diary []string
	on    func(Event) // further actions of the barrier
}

func enter(t *testing.T, name string, store driver.Store, change ...func(*Config, *stub)) *play {
	t.Helper()
	p := &play{t: t, line: faults.New(store, 1, faults.Plan{})}
	p.ground = &stub{store: p.line, nominee: &nominee{is: true}}
	cfg := Config{
		Name: name, LeaderGroupID: "g", Scribe: slog.New(slog.DiscardHandler),
	}
	for _, c := range change {
		c(&cfg, p.ground)
	}
	cfg.SetDefaults()
	props, err := cfg.check()
	if err != nil {
		t.Fatal(err)
	}
	p.elector = start(cfg, props, p.ground, p.barrier)
	t.Cleanup(func() { // for failing tests: no goroutine may be left in the bubble
		p.line.Heal()
		_ = p.Close()
	})
	return p
}

func (p *play) barrier(e Event) {
	p.mu.Lock()
	p.diary = append(p.diary, e.String())
	on := p.on
	p.mu.Unlock()
	if on != nil {
		on(e)
	}
}

// then sets further actions of the barrier from now on.
func (p *play) then(on func(Event)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.on = on
}

// events returns the barrier's events since the last call of events.
func (p *play) events() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	diary := p.diary
	p.diary = nil
	return diary
}

func (p *play) expect(events ...Event) {
	p.t.Helper()
	var want []string
	for _, e := range events {
		want = append(want, e.String())
	}
	if got := p.events(); !slices.Equal(got, want) {
		p.t.Errorf("%s got the events %v, want %v", p.cfg.Name, got, want)
	}
}

// mustLead pulses until it leads.
func (p *play) mustLead(within time.Duration) {
	p.t.Helper()
	if leads, err := p.Pulse(within); err != nil || !leads {
		p.t.Fatalf("%s does not lead within %v: %v", p.cfg.Name, within, err)
	}
}

// idle pulses without leading.
func (p *play) idle(during time.Duration) {
	p.t.Helper()
	if leads, err := p.Pulse(during); err != nil || leads {
		p.t.Fatalf("%s leads: %v, %v", p.cfg.Name, leads, err)
	}
}

func (p *play) end() {
	p.t.Helper()
	if err := p.Close(); err != nil {
		p.t.Error(err)
	}
	if p.State() != Closed || p.IsLeader() || p.Token() != 0 || p.Term() != nil || !p.ground.closed || !p.ground.nominee.gone() {
		p.t.Errorf("%s after Close: %v, leader %v, token %d", p.cfg.Name, p.State(), p.IsLeader(), p.Token())
	}
	p.Await()
}

func bubble(t *testing.T, test func(t *testing.T, store driver.Store)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(t, memory.New()) })
}
