package neli

import (
	"context"
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
