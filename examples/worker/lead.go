package main

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/tenure-go/tenure"
)

// worker does a job again and again while it leads.
type worker struct {
	every time.Duration
	// begin is called at the beginning of each term.
	begin func(ctx context.Context, term *tenure.Term) (job func(context.Context) error, err error)
}

// maxFailures is how many jobs in a row may fail before another process gets its turn. At a job
// each second this takes longer than a lease: while the database is away, the lease decides.
const maxFailures = 30

// lead is the work of one term. Its result decides how it goes on:
//
//   - A job that fails is tried again at the next tick, so a short trouble costs no term.
//   - With ErrDecline, after too many failures, the lease is released. Another process leads, and
//     this one campaigns again after a pause.
//   - nil means that the term is over, or that the program shuts down: it releases the lease.
//   - Any other error would end Run, and with it the program.
func (w *worker) lead(ctx context.Context, term *tenure.Term) error {
	job, err := w.begin(ctx, term)
	if err != nil {
		return fmt.Errorf("%w: begin the term: %w", tenure.ErrDecline, err)
	}
	tick := time.NewTicker(w.every)
	defer tick.Stop()
	// Err reads the clock, so no job begins right after a pause in which the lease has run out.
	for failures := 0; ctx.Err() == nil && term.Err() == nil; {
		// The context of the lease stays open while the program shuts down, so the job can finish.
		if err := job(term.LeaseContext()); err == nil {
			failures = 0
		} else if failures++; failures == maxFailures {
			return fmt.Errorf("%w: %d jobs failed in a row: %w", tenure.ErrDecline, failures, err)
		} else {
			slog.Warn("a job failed and is tried again", "cause", err)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
	return nil
}
