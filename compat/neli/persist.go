package neli

import (
	"context"
	"time"
)

const (
	attemptWithin = 10 * time.Second
	firstPause    = 100 * time.Millisecond
	longestPause  = 5 * time.Second
)

// retry calls do until it succeeds, fails for good, or the instance is closed.
func (n *elector) retry(what string, do func(ctx context.Context) error) error {
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		err := n.attempt(do)
		if err == nil || n.ctx.Err() != nil || !n.ground.passing(err) {
			return err
		}
		n.log.Warn("neli: cannot "+what+"; trying again", "error", err)
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-n.ctx.Done():
			timer.Stop()
			return err
		}
	}
}

func (n *elector) attempt(do func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeout(n.ctx, attemptWithin)
	defer cancel()
	return do(ctx)
}
