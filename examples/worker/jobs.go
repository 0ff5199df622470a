package main

import (
	"context"
	"database/sql"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver/sqlstore"
)

const (
	createJobs = "CREATE TABLE IF NOT EXISTS jobs (id bigserial PRIMARY KEY, done_by bigint)"
	doJobs     = "UPDATE jobs SET done_by = $1 WHERE done_by IS NULL"
)

// jobs begins the work of a term on the table of jobs. Its transactions commit only while no newer
// term has begun, even if this process is suspended in the middle of one. The outcome of a commit
// may be unknown, and the job is then tried again, so it must do no harm if it runs twice.
func jobs(db *sql.DB) func(context.Context, *tenure.Term) (func(context.Context) error, error) {
	return func(ctx context.Context, term *tenure.Term) (func(context.Context) error, error) {
		fence, err := sqlstore.OpenFence(ctx, term, db, sqlstore.Postgres(), sqlstore.FenceCreate())
		if err != nil {
			return nil, err
		}
		fenced := func(ctx context.Context, statement string, args ...any) error {
			return fence.Do(ctx, nil, func(ctx context.Context, tx *sql.Tx) error {
				_, err := tx.ExecContext(ctx, statement, args...)
				return err
			})
		}
		job := func(ctx context.Context) error { return fenced(ctx, doJobs, term.Token()) }
		return job, fenced(ctx, createJobs)
	}
}
