package recipes

import (
	"context"

	"github.com/hibiken/asynq"

	"github.com/tenure-go/tenure"
)

// Schedule runs a scheduler of asynq on the leader, for Election.Run. Make returns a new scheduler
// with its tasks registered, because one cannot start twice. When the term changes, a task may be
// enqueued twice: give it asynq.TaskID or asynq.Unique.
func Schedule(make func() (*asynq.Scheduler, error)) tenure.Lead {
	return func(ctx context.Context, _ *tenure.Term) error {
		s, err := make()
		if err != nil {
			return err
		}
		if err := s.Start(); err != nil {
			return err
		}
		<-ctx.Done()
		s.Shutdown()
		return nil
	}
}
