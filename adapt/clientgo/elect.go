package clientgo

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/client-go/tools/leaderelection"
)

// errGone is the result of work that did not return.
var errGone = errors.New("clientgo: OnStartedLeading ended by a panic or runtime.Goexit")

// Elect runs an elector of client-go over this lock, within Run, and waits for the end of
// OnStartedLeading, which reports that the work has stopped. It returns the errors of Run. Unlike
// Run, it can be called again after a term was lost.
//
// It sets Lock, and each unset duration to that of Times. It returns an error, and starts nothing,
// if another lock, ReleaseOnCancel or Coordinated is set, or if a duration differs from that of
// Times.
func (l *Lock) Elect(ctx context.Context, c leaderelection.LeaderElectionConfig) error {
	if err := l.adopt(&c); err != nil {
		return err
	}
	returned := make(chan error, 1)
	if lead := c.Callbacks.OnStartedLeading; lead != nil {
		c.Callbacks.OnStartedLeading = func(ctx context.Context) {
			err := errGone
			defer func() { returned <- err }()
			lead(ctx)
			err = nil
		}
	}
	elector, err := leaderelection.NewLeaderElector(c)
	if err != nil {
		return fmt.Errorf("clientgo: %w", err)
	}
	if c.WatchDog != nil {
		c.WatchDog.SetLeaderElection(elector)
	}
	return l.run(ctx, func(ctx context.Context) error {
		elector.Run(ctx)
		if !l.session.Load().hasAcquired() {
			return nil
		}
		return <-returned // the elector calls OnStartedLeading after each success
	}, true)
}

func (s *session) hasAcquired() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.acquired
}

// adopt checks and completes the settings of an elector.
func (l *Lock) adopt(c *leaderelection.LeaderElectionConfig) error {
	switch {
	case c.ReleaseOnCancel:
		return ErrReleaseOnCancel
	case c.Coordinated:
		return errors.New("clientgo: Coordinated must be off: Tenure elects")
	case c.Lock != nil && c.Lock != l:
		return errors.New("clientgo: Lock is another lock: leave it unset")
	}
	c.Lock = l
	for _, field := range []struct {
		name  string
		value *time.Duration
		want  time.Duration
	}{
		{"LeaseDuration", &c.LeaseDuration, l.times.LeaseDuration},
		{"RenewDeadline", &c.RenewDeadline, l.times.RenewDeadline},
		{"RetryPeriod", &c.RetryPeriod, l.times.RetryPeriod},
	} {
		orDefault(field.value, field.want)
		if *field.value != field.want {
			return fmt.Errorf("clientgo: %s of the elector is %v, and that of the lock is %v: leave it unset, and change clientgo.Config",
				field.name, *field.value, field.want)
		}
	}
	return nil
}
