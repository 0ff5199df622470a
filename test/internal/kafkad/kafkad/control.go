package kafkad

import (
	"context"
	"errors"
	"os"
	"syscall"
	"time"
)

// patience is how long brokers may take to answer, or to end. Only a hang takes longer, on a busy
// machine too.
const patience = 10 * time.Minute

// Signal sends a signal to a broker and returns at once.
func (c *Cluster) Signal(n int, sig os.Signal) error {
	b, err := c.broker(n)
	if err != nil {
		return err
	}
	return b.signal(sig)
}

// Kill ends a broker as SIGKILL does, also a paused one. It returns when the process is gone.
func (c *Cluster) Kill(n int) error { return c.end(n, os.Kill) }

// Stop ends a broker as an operator does, by SIGTERM: it hands over its partitions and leaves. It
// returns when the process is gone.
func (c *Cluster) Stop(n int) error { return c.end(n, syscall.SIGTERM) }

// Pause stops a broker as SIGSTOP does: it stays connected and silent. On Windows it is not
// supported.
func (c *Cluster) Pause(n int) error { return c.pausing(n, pause) }

// Resume lets a paused broker go on.
func (c *Cluster) Resume(n int) error { return c.pausing(n, resume) }

func (c *Cluster) pausing(n int, do func(*os.Process) error) error {
	b, err := c.broker(n)
	if err != nil {
		return err
	}
	process, _ := b.now()
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

// Start starts a broker again, on its files, and returns when the cluster counts it among its
// members again.
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

// Heal lets paused brokers go on, starts those that ended, and returns when all copies of all
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
