// Package hook runs a command after each change of a candidate's state.
package hook

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/tenure-go/tenure"
)

// Limit bounds one run of the command. Without it, a command that hangs would hide all later
// states.
const Limit = time.Minute

// Grace is how long Close waits for the command with the last states.
const Grace = 5 * time.Second

// endWithin bounds the wait for a call that was ended: the kernel may be unable to kill it.
const endWithin = time.Second

var (
	errTooLong = fmt.Errorf("it took more than %v", Limit)
	errClosed  = errors.New("tenure ends")
)

// State is the state of a candidate. The command gets it in variables of its environment.
type State struct {
	Election, ID string // of the candidate
	// State is "candidate", "leader", "leaving", "lost" or "released": the last of these events.
	State tenure.EventKind
	// Token is that of the term of leader, leaving and lost, else 0.
	Token uint64
	// Leader is the ID of the leader as far as this candidate knows; "" if none leads.
	Leader string
}

// Variables returns the state as variables of the environment, NAME=VALUE. TENURE_TOKEN is left out
// if it is 0.
func (s State) Variables() []string {
	all := []string{
		"TENURE_ELECTION=" + s.Election, "TENURE_ID=" + s.ID, "TENURE_STATE=" + string(s.State), "TENURE_LEADER=" + s.Leader,
	}
	if s.Token != 0 {
		all = append(all, fmt.Sprint("TENURE_TOKEN=", s.Token))
	}
	return all
}

type key struct{ election, id string }

// last is the last state of a candidate.
type last struct {
	State
	waits bool // it was not given to run
}

// Hook calls a function with the states of candidates, one call at a time. A state that another one
// of the same candidate follows before its turn is left out.
type Hook struct {
	run func(ctx context.Context, s State) error
	log *slog.Logger

	ctx   context.Context // of the calls
	abort context.CancelCauseFunc
	ended chan struct{}

	mu      sync.Mutex
	known   map[key]*last
	waiting []key // the oldest first
	closed  bool
	wake    chan struct{} // has room for one
}

// New returns a Hook for run, whose calls end soon after their ctx. Close ends it.
func New(run func(ctx context.Context, s State) error, log *slog.Logger) *Hook {
	h := &Hook{run: run, log: log, known: map[key]*last{}, ended: make(chan struct{}), wake: make(chan struct{}, 1)}
	h.ctx, h.abort = context.WithCancelCause(context.Background())
	go h.follow()
	return h
}

// Hear takes an event of an election. It does not block.
func (h *Hook) Hear(e tenure.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	k := key{e.Election, e.ID}
	before := h.known[k]
	var s State
	if before != nil {
		s = before.State
	}
	s.Election, s.ID = e.Election, e.ID
	switch e.Kind {
	case tenure.EventCandidate, tenure.EventReleased:
		s.State, s.Token = e.Kind, 0
	case tenure.EventElected:
		s.State, s.Token = "leader", e.Term
	case tenure.EventLeaving, tenure.EventLost:
		s.State, s.Token = e.Kind, e.Term
	case tenure.EventLeader:
		s.Leader = e.Leader.ID
	}
	switch {
	case s.State == "" || h.closed || before != nil && s == before.State:
		return
	case before == nil:
		h.forget()
		before = &last{}
		h.known[k] = before
	}
	before.State = s
	if !before.waits {
		before.waits = true
		h.waiting = append(h.waiting, k)
		h.signal()
	}
}

// mostKnown bounds the candidates that are remembered: those of an agent come and go.
const mostKnown = 10_000

// forget drops candidates so that there is room for another one. The next event of a dropped
// candidate calls run, also if its state is the same. The caller holds the lock.
func (h *Hook) forget() {
	if len(h.waiting) == len(h.known) {
		return
	}
	for k, l := range h.known {
		if len(h.known) < mostKnown {
			return
		}
		if !l.waits {
			delete(h.known, k)
		}
	}
}

// signal wakes follow.
func (h *Hook) signal() {
	select {
	case h.wake <- struct{}{}:
	default:
	}
}

// next returns the state whose turn it is, and whether there is one, or whether the hook has ended.
func (h *Hook) next() (s State, ok, ended bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.waiting) == 0 {
		return s, false, h.closed
	}
	l := h.known[h.waiting[0]]
	h.waiting = h.waiting[1:]
	l.waits = false
	return l.State, true, false
}

func (h *Hook) follow() {
	defer close(h.ended)
	for {
		s, ok, ended := h.next()
		switch {
		case ended || h.ctx.Err() != nil:
			return
		case ok:
			h.call(s)
		default:
			<-h.wake
		}
	}
}

func (h *Hook) call(s State) {
	ctx, cancel := context.WithTimeoutCause(h.ctx, Limit, errTooLong)
	defer cancel()
	if err := h.run(ctx, s); err != nil {
		h.log.Warn("the command of --on-change failed", "election", s.Election, "id", s.ID, "state", string(s.State), "cause", err)
	}
}

// Close returns when the last states were given to run, or ends its call after Grace, and waits
// another second at most. It takes no more events.
func (h *Hook) Close() {
	h.mu.Lock()
	h.closed = true
	h.mu.Unlock()
	h.signal()
	defer time.AfterFunc(Grace, func() { h.abort(errClosed) }).Stop()
	select {
	case <-h.ended:
	case <-time.After(Grace + endWithin):
	}
}
