package s3lect

import (
	"context"
	"fmt"
	"time"

	"github.com/tenure-go/tenure"
)

// hookWithin is how long the context of OnLoseLeadership lasts.
const hookWithin = 5 * time.Second

// lead is a leader's work: it calls the hooks. Its context ends when leadership should end, or has
// ended.
func (e *S3Elector) lead(ctx context.Context, t *tenure.Term) error {
	e.begin(t)
	if hook := e.config().OnAcquireLeadership; hook != nil {
		if err := hook(ctx); err != nil {
			e.log.Error("s3lect: OnAcquireLeadership failed; resigning", "error", err)
			e.finish(ctx, true)
			return fmt.Errorf("%w: %w", tenure.ErrDecline, err)
		}
	}
	e.acquired()
	<-ctx.Done()
	e.finish(ctx, false)
	return nil
}

func (e *S3Elector) begin(t *tenure.Term) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.term, e.elected = t, time.Now()
	e.broadcast()
}

func (e *S3Elector) acquired() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.ready = true
	e.broadcast()
}

// finish returns when the hook has returned: only then may the lease be released.
func (e *S3Elector) finish(ctx context.Context, failed bool) {
	e.mu.Lock()
	e.term, e.ready = nil, false
	if failed {
		e.elected = time.Time{}
	}
	hook := e.cfg.OnLoseLeadership
	e.broadcast()
	e.mu.Unlock()
	if hook == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), hookWithin)
	defer cancel()
	if err := hook(ctx); err != nil {
		e.log.Warn("s3lect: OnLoseLeadership failed", "error", err)
	}
}
