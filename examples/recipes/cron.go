package recipes

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/tenure-go/tenure"
)

// OnLeader lets robfig/cron run jobs on the leader only, if the lease is valid for at least need:
// cron.WithChain(wrap). Give lead to Election.Run, beside the scheduler. It returns when no job
// runs, so that the lease is released after that. A job that takes longer than FinishWithin of the
// election is no longer protected: another process may run jobs beside it.
func OnLeader(e *tenure.Election, need time.Duration) (wrap cron.JobWrapper, lead tenure.Lead) {
	var running atomic.Int64 // jobs
	wrap = func(job cron.Job) cron.Job {
		return cron.FuncJob(func() {
			running.Add(1) // before it asks, so either lead waits for it, or it sees the end
			defer running.Add(-1)
			term, _ := e.Term() // that of no term is nil, and over
			if term.Context().Err() != nil {
				return
			}
			_ = term.Do(context.Background(), need, func(context.Context) error {
				job.Run()
				return nil
			})
		})
	}
	return wrap, func(ctx context.Context, _ *tenure.Term) error {
		<-ctx.Done()
		for running.Load() > 0 {
			time.Sleep(10 * time.Millisecond)
		}
		return nil
	}
}
