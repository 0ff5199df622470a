package kafkad

import (
	"context"
	"errors"
	"os"
	"syscall"
	"time"
)

// patience is the time limit for brokers to answer or to end. Even on a busy machine, only a broker
// that hangs takes longer.
const patience = 10 * time.Minute

// Signal sends a signal to a broker and returns at once.
func (c *Cluster) Signal(n int, sig os.Signal) error {
	b, err := c.broker(n)
	if err != nil {
		return err
	}
	return b.signal(sig)
}

// Kill ends a broker by SIGKILL, also a paused one. It returns when the process is gone.
func (c *Cluster) Kill(n int) error { return c.end(n, os.Kill) }

// Stop ends a broker by SIGTERM, as an operator does: the broker hands over its partitions and
// leaves. Stop returns when the process is gone.
func (c *Cluster) Stop(n int) error { return c.end(n, syscall.SIGTERM) }

// Pause stops a broker by SIGSTOP: it stays connected and silent. On Windows it is not supported.
func (c *Cluster) Pause(n int) error { return c.pausing(n, pause) }

// Resume continues a paused broker.
func (c *Cluster) Resume(n int) error { return c.pausing(n, resume) }

func (c *Cluster) pausing(n int, do func(*os.Process) error) error {
	b, err := c.broker(n)
	if err != nil {
		return err
	}
	process, _ := b.current()
	if process == nil {
		return os.ErrProcessDone
	}
	return do(process)
}

func (c *Cluster) end(n int, sig os.Signal) error {
	b, err := c.broker(n)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return b.end(ctx, sig)
}

// Start starts a broker again, on its files. It returns when the broker is a member of the cluster
// again.
func (c *Cluster) Start(n int) error {
	b, err := c.broker(n)
	if err != nil {
		return err
	}
	if err := b.start(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return c.joined(ctx, b)
}

// End ends all brokers at once, also paused ones; their files stay in the directory.
func (c *Cluster) End() error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return c.each(func(b *broker) error { return b.end(ctx, os.Kill) })
}

// Heal continues paused brokers and starts those that ended. It returns when all copies of all
// partitions are complete.
func (c *Cluster) Heal(ctx context.Context) error {
	var errs []error
	for _, b := range c.brokers {
		if !b.runs() {
			errs = append(errs, b.start())
			continue
		}
		errs = append(errs, c.Resume(b.n))
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return c.Complete(ctx)
}
