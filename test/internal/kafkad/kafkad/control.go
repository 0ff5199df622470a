package kafkad

import (
	"context"
	"errors"
	"time"
)

// patience is the time limit for brokers to answer or to end. Even on a busy machine, only a broker
// that hangs takes longer.
const patience = 10 * time.Minute

// Kill ends a broker by SIGKILL, also a paused one. It returns when the process is gone.
func (c *Cluster) Kill(n int) error { return c.on(n, (*broker).Kill) }

// Stop ends a broker by SIGTERM, as an operator does: the broker hands over its partitions and
// leaves. Stop returns when the process is gone.
func (c *Cluster) Stop(n int) error { return c.on(n, (*broker).Stop) }

// Pause stops a broker by SIGSTOP: it stays connected and silent. On Windows it is not supported.
func (c *Cluster) Pause(n int) error { return c.on(n, (*broker).Pause) }

// Resume continues a paused broker.
func (c *Cluster) Resume(n int) error { return c.on(n, (*broker).Resume) }

func (c *Cluster) on(n int, do func(*broker) error) error {
	b, err := c.broker(n)
	if err != nil {
		return err
	}
	return do(b)
}

// Start starts a broker again, on its files. It returns when the broker is a member of the cluster
// again.
func (c *Cluster) Start(n int) error {
	b, err := c.broker(n)
	if err != nil {
		return err
	}
	if err := b.Begin(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return c.joined(ctx, b)
}

// End ends all brokers at once, also paused ones; their files stay in the directory.
func (c *Cluster) End() error { return c.each((*broker).Kill) }

// Heal continues paused brokers and starts those that ended. It returns when all copies of all
// partitions are complete.
func (c *Cluster) Heal(ctx context.Context) error {
	var errs []error
	for _, b := range c.brokers {
		if !b.Runs() {
			errs = append(errs, b.Begin())
			continue
		}
		errs = append(errs, c.Resume(b.n))
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return c.Complete(ctx)
}
