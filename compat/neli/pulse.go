package neli

import (
	"context"
	"errors"
	"time"
)

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
