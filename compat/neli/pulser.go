package neli

import (
	"context"
	"errors"
)

// LeaderTask is some of a leader's work. It is called again and again while this process leads, so
// it should do a little and return.
type LeaderTask func()

// Pulser pulses in a goroutine of its own, until it or its instance is closed or there is an error.
type Pulser interface {
	// Close ends the pulsing. It waits for nothing.
	Close()
	// Error is why the pulsing ended, nil if it was closed or has not ended.
	Error() error
	// Await returns Error when the pulsing, and the task, have ended.
	Await() error
}

type pulser struct {
	cancel context.CancelFunc
	done   chan struct{}
	err    error // before done is closed
}

// background pulses and calls the task as often as it leads.
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
