//go:build unix

package main

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/cmd/internal/fault"
	"github.com/tenure-go/tenure/cmd/internal/output"
	"github.com/tenure-go/tenure/cmd/tenure/internal/guarded"
	"github.com/tenure-go/tenure/cmd/tenure/internal/wrap"
)

// campaign is that of a wrap.Wrapper.
type campaign interface {
	Context() context.Context
	GiveUp(reason error)
}

// patience gives up a campaign that takes too long, as long as the command has not begun.
type patience struct {
	wait time.Duration // 0: no limit
	none bool          // give up as soon as a read fails or does not let this candidate claim

	wrapper  campaign
	election atomic.Pointer[tenure.Election] // nil until the store has answered

	mu      sync.Mutex
	elected bool
	waiting tenure.Event // the last EventWaiting
}

// begin counts the time from now on. Call stop when the campaign is over.
func (p *patience) begin() (stop func()) {
	if p.wait == 0 {
		return func() {}
	}
	t := time.AfterFunc(p.wait, func() { p.wrapper.GiveUp(p.unelected()) })
	return func() { t.Stop() }
}

// hear is called with each event of the election.
func (p *patience) hear(e tenure.Event) {
	p.mu.Lock()
	switch e.Kind {
	case tenure.EventElected:
		p.elected = true
	case tenure.EventWaiting:
		p.waiting = e
	}
	stays := !p.none || p.elected
	p.mu.Unlock()
	switch {
	case stays:
	case e.Kind == tenure.EventWaiting:
		p.wrapper.GiveUp(waits(e))
	case e.Kind == tenure.EventLeader && e.Leader.Exists():
		p.wrapper.GiveUp(led(e.Leader))
	case e.Kind == tenure.EventTrouble:
		// Trouble with a push alone delays no claim, and is not in the status.
		if why := p.election.Load().Status().Trouble; why != nil {
			p.wrapper.GiveUp(coded(guarded.CodeFailed, fmt.Errorf("the command was not run: %w", why)))
		}
	}
}

// unelected returns why this candidate has not led within the time.
func (p *patience) unelected() error {
	p.mu.Lock()
	waiting := p.waiting
	p.mu.Unlock()
	var s tenure.Status
	if e := p.election.Load(); e != nil {
		s = e.Status()
	}
	switch {
	case s.Leader.Exists():
		return led(s.Leader)
	case s.Known && waiting.Cause != nil:
		return waits(waiting)
	case s.Known:
		return coded(wrap.CodeNotElected, fmt.Errorf("not elected within %v: the command was not run", p.wait))
	case s.Trouble != nil:
		return coded(guarded.CodeFailed, fmt.Errorf("the store has not answered within %v: %w", p.wait, s.Trouble))
	default: // nor failed
		return coded(guarded.CodeFailed, fmt.Errorf("the store has not answered within %v", p.wait))
	}
}

func led(by tenure.Leader) error {
	return coded(wrap.CodeNotElected, fmt.Errorf("%s leads, in term %d: the command was not run", output.Plain(by.ID), by.Term))
}

// waits says what this candidate waits for. More time helps only if the wait ends by itself.
func waits(e tenure.Event) error {
	hint := ""
	if !e.Until.IsZero() {
		hint = "give this time with --wait, longer than the lease"
	}
	f := fault.New(hint, "the command was not run: %w", e.Cause)
	f.Code = wrap.CodeNotElected
	return f
}
