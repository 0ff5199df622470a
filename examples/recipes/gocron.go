package recipes

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/go-co-op/gocron/v2"

	"github.com/tenure-go/tenure"
)

var _ gocron.Elector = (*Elector)(nil)

// Elector lets gocron run jobs on the leader only: gocron.WithDistributedElector. Make each task
// with Task, and give Lead to Election.Run, beside the scheduler.
type Elector struct {
	*tenure.Election
	running atomic.Int64 // jobs
}

// IsLeader returns nil while the lease of this process is valid.
func (e *Elector) IsLeader(context.Context) error {
	term, _ := e.Term()
	return term.Err() // a nil term is over
}

// Task returns a task that does its job while this process leads. The context of the job ends with
// the lease. A job that takes longer than FinishWithin of the election is no longer protected:
// another process may run jobs beside it.
func (e *Elector) Task(job func(context.Context) error) gocron.Task {
	return gocron.NewTask(func(ctx context.Context) error {
		e.running.Add(1) // before it asks, so either Lead waits for it, or it sees the end
		defer e.running.Add(-1)
		term, _ := e.Term()
		if work := term.Context(); work.Err() != nil {
			return context.Cause(work)
		}
		return term.Do(ctx, 0, job)
	})
}

// Lead returns when no job runs, so that the lease is released after that.
func (e *Elector) Lead(ctx context.Context, _ *tenure.Term) error {
	<-ctx.Done()
	for e.running.Load() > 0 {
		time.Sleep(10 * time.Millisecond)
	}
	return nil
}
