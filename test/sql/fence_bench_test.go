//go:build integration

package sql

import (
	"context"
	"database/sql"
	"slices"
	"testing"
	"time"
)

// BenchmarkFence compares transactions of one INSERT, one after another, with and without a fence.
func BenchmarkFence(b *testing.B) {
	for name, start := range ledgers {
		l := start(b)
		first, _ := term(b, 7, time.Minute)
		f := l.open(b, first)
		insert := func(ctx context.Context, tx *sql.Tx) error {
			_, err := tx.ExecContext(ctx, l.insert, 7)
			return err
		}
		b.Run(name, func(b *testing.B) {
			var plain, fenced []time.Duration
			for b.Loop() {
				began := time.Now()
				tx, err := l.db.BeginTx(b.Context(), nil)
				must(b, err)
				must(b, insert(b.Context(), tx))
				must(b, tx.Commit())
				done := time.Now()
				must(b, f.Do(b.Context(), nil, insert))
				plain, fenced = append(plain, done.Sub(began)), append(fenced, time.Since(done))
			}
			slices.Sort(plain)
			slices.Sort(fenced)
			b.ReportMetric(float64(plain[len(plain)/2].Microseconds()), "plain-p50-µs")
			b.ReportMetric(float64(fenced[len(fenced)/2].Microseconds()), "fenced-p50-µs")
		})
	}
}
