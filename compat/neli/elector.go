package neli

import (
	"context"
	"errors"
	"log/slog"
	"runtime"
	"sync"
	"time"

	"github.com/tenure-go/tenure"
)

// elector is the Neli that New returns. It learns of terms from its sessions, and calls the barrier
// in tell.
type elector struct {
	cfg      Config
	props    properties
	log      *slog.Logger
	barrier  Barrier
	deadline *deadline
	ground   ground

	ctx    context.Context // ends when Close is called
	stop   context.CancelFunc
	closed chan struct{}

	changes // guards the following
	state   State
	held    *holding  // the term that was won; its end was not reported yet
	calling bool      // the barrier is being called
	working int       // tasks of Background that are running
	pulsing int       // calls of Pulse under way, except those in the barrier
	pulsed  time.Time // when pulsing last changed
	dormant bool      // Pulse was not called for long, so the instance does not take part
	fatal   error
	closing error // the error of closing
}

// changes is a lock whose holders wake the goroutines that wait for a change.
type changes struct {
	mu      sync.Mutex
	changed chan struct{} // closed and replaced at each change
}

// change calls do under the lock and wakes the waiters.
func (c *changes) change(do func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	do()
	c.broadcast()
}

// broadcast wakes the waiters. It is called under the lock.
func (c *changes) broadcast() {
	close(c.changed)
	c.changed = make(chan struct{})
}

// news returns a channel that is closed at the next change.
func (c *changes) news() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.changed
}

// closeWithin bounds how long Close waits.
const closeWithin = 10 * time.Second

// untilClosed calls closed now and at each change. It returns nil once closed returns true, and an
// error after closeWithin.
func (c *changes) untilClosed(closed func() bool) error {
	late := time.NewTimer(closeWithin)
	defer late.Stop()
	for {
		changed := c.news()
		if closed() {
			return nil
		}
		select {
		case <-changed:
		case <-late.C:
			return errBusy
		}
	}
}

// stage is which events of a term the barrier has received.
type stage int

const (
	won       stage = iota // nothing yet
	acquiring              // the barrier is handling LeaderAcquired
	leading                // the barrier has handled LeaderAcquired
	leaving                // the barrier is handling LeaderRevoked or LeaderFenced
)

// holding is a term that was won, and which of its events the barrier has received.
type holding struct {
	term  *tenure.Term
	stage stage
	over  chan struct{} // closed when the barrier has handled the end
}

// asked reports whether the term is over, or the process was asked to stop leading.
func (h *holding) asked() bool { return h.term.Context().Err() != nil || h.term.Err() != nil }

func start(cfg Config, props properties, g ground, barrier Barrier) *elector {
	n := &elector{
		cfg: cfg, props: props, log: cfg.Scribe.With("name", cfg.Name, "group", cfg.LeaderGroupID), barrier: barrier,
		deadline: newDeadline(*cfg.MinPollInterval), ground: g, closed: make(chan struct{}),
		pulsed: time.Now(), changes: changes{changed: make(chan struct{})},
	}
	n.ctx, n.stop = context.WithCancel(context.Background())
	go n.runSessions()
	return n
}

// holds returns the term if it is in one of these stages and the instance is live; otherwise nil.
func (n *elector) holds(stages ...stage) *tenure.Term {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, s := range stages {
		if n.state == Live && n.held != nil && n.held.stage == s {
			return n.held.term
		}
	}
	return nil
}

func (n *elector) IsLeader() bool {
	t := n.holds(acquiring, leading)
	return t != nil && t.Err() == nil
}

// ready reports whether work may begin.
func (n *elector) ready() bool {
	t := n.holds(leading)
	return t != nil && t.Context().Err() == nil && t.Err() == nil
}

func (n *elector) Term() *tenure.Term {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.held == nil || n.held.stage == won {
		return nil
	}
	return n.held.term
}

func (n *elector) Token() uint64 {
	if t := n.Term(); t != nil && t.Err() == nil {
		return t.Token()
	}
	return 0
}

func (n *elector) State() State {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.state
}

func (n *elector) Deadline() Deadline { return n.deadline }

func (n *elector) Await() { <-n.closed }

func (n *elector) wake() { n.change(func() {}) }

// lead is a leader's work: it makes the barrier receive the events of the term. It returns when the
// barrier has handled the last one, so the lease is not released before.
func (s *session) lead(ctx context.Context, t *tenure.Term) error {
	n, h := s.n, &holding{term: t, over: make(chan struct{})}
	s.term = t
	n.change(func() { n.held = h })
	<-ctx.Done()
	defer context.AfterFunc(t.LeaseContext(), n.wake)()
	if n.dropUnreported(h) {
		return nil
	}
	select {
	case <-h.over:
	case <-s.unpulsed():
		runtime.Goexit() // the barrier cannot be called, so the lease runs out
	}
	return nil
}

// unpulsed returns a channel that is closed if the session ends because Pulse was not called.
func (s *session) unpulsed() <-chan struct{} {
	c := make(chan struct{})
	context.AfterFunc(s.ctx, func() {
		if errors.Is(context.Cause(s.ctx), errSilent) {
			close(c)
		}
	})
	return c
}

// awaitEnd waits until the barrier has handled the end of a term.
func (n *elector) awaitEnd(t *tenure.Term) {
	n.mu.Lock()
	h := n.held
	n.mu.Unlock()
	if h != nil && h.term == t {
		<-h.over
	}
}

// dropUnreported drops a term whose LeaderAcquired was not yet reported, and returns whether it
// did. Otherwise it wakes the calls of Pulse, which report the end of the term.
func (n *elector) dropUnreported(h *holding) bool {
	gone := false
	n.change(func() {
		if gone = h.stage == won; gone {
			n.held = nil
		}
	})
	return gone
}

// resign waits until the barrier has handled LeaderFenced, so the program has stopped, and then
// resigns the term.
func (s *session) resign() error {
	s.n.awaitEnd(s.term)
	ctx, cancel := context.WithTimeout(context.Background(), resignWithin)
	defer cancel()
	_ = s.term.Resign(ctx) // an unreleased lease expires
	return nil
}

const resignWithin = 2 * time.Second

// tell calls the barrier with all events that are due, without the lock, and never from two
// goroutines at once.
func (n *elector) tell() {
	for n.tellOne() {
	}
}

func (n *elector) tellOne() bool {
	n.mu.Lock()
	h, e := n.held, n.due()
	if e == nil {
		n.mu.Unlock()
		return false
	}
	n.calling = true
	n.pulse(-1) // while the barrier runs, no Pulse counts as under way
	n.mu.Unlock()
	defer n.change(func() { n.barrierReturned(h) }) // also if the barrier panics
	n.log.Info("neli: "+e.String(), "term", h.term.Token())
	n.barrier(e)
	return true
}

// due returns the next event for the barrier, or nil. LeaderRevoked waits for the tasks that are
// running; LeaderFenced, which stops them, does not. A term that ends before LeaderAcquired was
// reported causes no event.
func (n *elector) due() Event {
	h := n.held
	switch {
	case h == nil || n.calling:
	case h.stage == won:
		if n.state == Live && !h.asked() {
			h.stage = acquiring
			return LeaderAcquired{}
		}
	case h.term.Err() != nil:
		h.stage = leaving
		return LeaderFenced{}
	case n.working == 0 && (n.state != Live || h.asked()):
		h.stage = leaving
		return LeaderRevoked{}
	}
	return nil
}

// barrierReturned records that the barrier has returned.
func (n *elector) barrierReturned(h *holding) {
	n.calling = false
	n.pulse(1)
	if h.stage == acquiring {
		h.stage = leading
		return
	}
	n.held = nil
	close(h.over)
}

func (n *elector) Close() error {
	n.change(func() {
		if n.state == Live {
			n.state = Closing
		}
	})
	n.stop()
	err := n.untilClosed(func() bool {
		n.tell()
		return n.State() == Closed
	})
	if err != nil {
		return err
	}
	return n.closing
}

// ended completes the closing of an instance.
func (n *elector) ended() {
	err := n.ground.close()
	n.change(func() {
		n.state, n.closing = Closed, err
		close(n.closed)
	})
}

func (n *elector) Pulse(timeout time.Duration) (bool, error) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	return n.PulseCtx(ctx)
}

func (n *elector) PulseCtx(ctx context.Context) (bool, error) {
	n.enter()
	defer n.leave()
	return await(ctx, n.deadline, n.news, n.look)
}

// await calls look until this process leads, there is an error or ctx ends: at each change, and
// whenever the deadline has passed.
func await(ctx context.Context, d *deadline, news func() <-chan struct{}, look func() (bool, error)) (bool, error) {
	for {
		changed := news()
		d.TryRun(func() {})
		leads, err := look()
		if leads || err != nil {
			return leads, err
		}
		timer := time.NewTimer(max(d.Remaining(), time.Millisecond))
		select {
		case <-ctx.Done():
			timer.Stop()
			return false, nil
		case <-changed:
			timer.Stop()
		case <-timer.C:
		}
	}
}

// look calls the barrier with the events that are due, and returns the result of Pulse.
func (n *elector) look() (bool, error) {
	n.tell()
	n.mu.Lock()
	state, fatal := n.state, n.fatal
	n.mu.Unlock()
	switch {
	case state != Live:
		return false, ErrNonLivePulse
	case fatal != nil:
		return n.IsLeader(), fatal
	}
	return n.ready(), nil
}

func (n *elector) enter() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.pulse(1); n.dormant {
		n.broadcast()
	}
}

func (n *elector) leave() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.pulse(-1)
}

// pulse counts the calls of Pulse under way, and records the time of the last change. It is called
// under the lock.
func (n *elector) pulse(by int) {
	n.pulsing += by
	n.pulsed = time.Now()
}

// silent returns the time since the last Pulse ended, 0 while one is under way.
func (n *elector) silent() time.Duration {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.pulsing > 0 {
		return 0
	}
	return time.Since(n.pulsed)
}

// LeaderTask is a small part of a leader's work. It is called again and again while this process
// leads, so it should return soon.
type LeaderTask func()

// Pulser calls Pulse in a goroutine of its own, until the Pulser or its instance is closed, or
// Pulse returns an error.
type Pulser interface {
	// Close ends the calls of Pulse. It does not wait.
	Close()
	// Error returns the error that ended the Pulser; nil if it was closed or has not ended.
	Error() error
	// Await waits until the Pulser and its task have ended, and returns Error.
	Await() error
}

type pulser struct {
	cancel context.CancelFunc
	done   chan struct{}
	err    error // before done is closed
}

// background starts a Pulser.
func background(pulse func(context.Context) (bool, error), task LeaderTask) (Pulser, error) {
	if task == nil {
		return nil, errNoTask
	}
	ctx, cancel := context.WithCancel(context.Background())
	p := &pulser{cancel: cancel, done: make(chan struct{})}
	go p.run(ctx, pulse, task)
	return p, nil
}

func (p *pulser) run(ctx context.Context, pulse func(context.Context) (bool, error), task LeaderTask) {
	defer close(p.done)
	defer p.cancel()
	for ctx.Err() == nil {
		leads, err := pulse(ctx)
		if err != nil {
			if !errors.Is(err, ErrNonLivePulse) {
				p.err = err
			}
			return
		}
		if leads && ctx.Err() == nil {
			task()
		}
	}
}

func (p *pulser) Close() { p.cancel() }

func (p *pulser) Error() error {
	select {
	case <-p.done:
		return p.err
	default:
		return nil
	}
}

func (p *pulser) Await() error {
	<-p.done
	return p.err
}

func (n *elector) Background(task LeaderTask) (Pulser, error) {
	if task == nil {
		return nil, errNoTask
	}
	return background(n.PulseCtx, func() { n.during(task) })
}

// during calls the task, unless the process has just stopped leading, and delays LeaderRevoked
// until it returns.
func (n *elector) during(task LeaderTask) {
	n.mu.Lock()
	h := n.held
	begin := n.state == Live && h != nil && h.stage == leading && !h.asked()
	if begin {
		n.working++
	}
	n.mu.Unlock()
	if begin {
		defer n.change(func() { n.working-- })
		task()
	}
}
