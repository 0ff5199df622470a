package recipes

import (
	"context"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/tenure-go/tenure"
)

// OnLeader lets robfig/cron run jobs on the leader only, if the lease is valid for at least need:
// cron.WithChain(OnLeader(e, need)). The program calls Election.Run beside the scheduler.
func OnLeader(e *tenure.Election, need time.Duration) cron.JobWrapper {
	return func(job cron.Job) cron.Job {
		return cron.FuncJob(func() {
			term, _ := e.Term() // Do of a nil term calls nothing
			_ = term.Do(context.Background(), need, func(context.Context) error {
				job.Run()
				return nil
			})
		})
	}
}
