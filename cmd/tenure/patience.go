//go:build unix

package main

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/cmd/internal/fault"
	"github.com/tenure-go/tenure/cmd/internal/output"
	"github.com/tenure-go/tenure/cmd/tenure/internal/wrap"
)

// patience gives up a campaign that takes too long, as long as the command has not begun.
type patience struct {
	wait time.Duration // 0: no limit
	none bool          // give up as soon as a read does not let this candidate claim

	wrapper  *wrap.Wrapper
	election atomic.Pointer[tenure.Election] // nil until the store has answered

	mu      sync.Mutex
	elected bool
	waiting error // the cause of the last EventWaiting
	reason  error // why it gave up, or nil
}

// begin counts the time from now on. Call stop when the campaign is over.
func (p *patience) begin() (stop func()) {
	if p.wait == 0 {
		return func() {}
	}
	t := time.AfterFunc(p.wait, func() { p.giveUp(p.unelected()) })
	return func() { t.Stop() }
}

// hear is called with each event of the election.
func (p *patience) hear(e tenure.Event) {
	p.mu.Lock()
	switch e.Kind {
	case tenure.EventElected:
		p.elected = true
	case tenure.EventWaiting:
		p.waiting = e.Cause
	}
	refused := e.Kind == tenure.EventWaiting || e.Kind == tenure.EventLeader && e.Leader.Exists()
	refused = refused && p.none && !p.elected
	p.mu.Unlock()
	switch {
	case !refused:
	case e.Leader.Exists():
		p.giveUp(led(e.Leader))
	default:
		p.giveUp(waits(e.Cause))
	}
}

// giveUp ends the campaign, unless the command has begun.
func (p *patience) giveUp(reason error) {
	if !p.wrapper.GiveUp() {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.reason = reason
}

// gaveUp returns why the campaign was given up, or nil.
func (p *patience) gaveUp() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.reason
}

// unelected returns why this candidate has not led within the time.
func (p *patience) unelected() error {
	e := p.election.Load()
	if e == nil {
		return coded(wrap.CodeFailed, fmt.Errorf("the store has not answered within %v", p.wait))
	}
	p.mu.Lock()
	waiting := p.waiting
	p.mu.Unlock()
	switch s := e.Status(); {
	case s.Leader.Exists():
		return led(s.Leader)
	case s.Known && waiting != nil:
		return waits(waiting)
	case s.Known:
		return coded(wrap.CodeNotElected, fmt.Errorf("not elected within %v: the command was not run", p.wait))
	default:
		return coded(wrap.CodeFailed, fmt.Errorf("the store has not answered within %v: %w", p.wait, s.Trouble))
	}
}

func led(by tenure.Leader) error {
	return coded(wrap.CodeNotElected, fmt.Errorf("%s leads, in term %d: the command was not run", output.Plain(by.ID), by.Term))
}

func waits(why error) error {
	f := fault.New("give this time with --wait, longer than the lease", "the command was not run: %w", why)
	f.Code = wrap.CodeNotElected
	return f
}
