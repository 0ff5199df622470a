package neli

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/tenure-go/tenure"
)

// elector is the Neli that New returns. It learns of terms from session.go, and calls the barrier
// in tell.go.
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

	mu      sync.Mutex
	state   State
	held    *holding  // the term that was won; its end was not reported yet
	calling bool      // the barrier is being called
	working int       // tasks of Background that are running
	pulsing int       // calls of Pulse under way, except those in the barrier
	pulsed  time.Time // when pulsing last changed
	dormant bool      // Pulse was not called for long, so the instance does not take part
	fatal   error
	closing error         // the error of closing
	changed chan struct{} // closed and replaced when one of these changes
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
func (h *holding) asked() bool { return h.term.Soft().Err() != nil || h.term.Err() != nil }

func start(cfg Config, props properties, g ground, barrier Barrier) *elector {
	n := &elector{
		cfg: cfg, props: props, log: cfg.Scribe.With("name", cfg.Name, "group", cfg.LeaderGroupID), barrier: barrier,
		deadline: newDeadline(*cfg.MinPollInterval), ground: g, closed: make(chan struct{}),
		pulsed: time.Now(), changed: make(chan struct{}),
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
	return t != nil && t.Soft().Err() == nil && t.Err() == nil
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

// change calls do under the lock and wakes the waiters.
func (n *elector) change(do func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	do()
	n.broadcast()
}

// broadcast wakes the waiters. It is called under the lock.
func (n *elector) broadcast() {
	close(n.changed)
	n.changed = make(chan struct{})
}

func (n *elector) wake() { n.change(func() {}) }

// news returns a channel that is closed at the next change.
func (n *elector) news() <-chan struct{} {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.changed
}
