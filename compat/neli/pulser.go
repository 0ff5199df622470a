package neli

import (
	"context"
	"errors"
)

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
