package neli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/faults"
	"github.com/tenure-go/tenure/driver/memory"
)

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
