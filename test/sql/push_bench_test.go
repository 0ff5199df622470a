//go:build integration

package sql

import (
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/sqlstore"
	"github.com/tenure-go/tenure/test/internal/machine"
	"github.com/tenure-go/tenure/test/internal/sqld"
)

// BenchmarkNotifications compares writes with and without a notification, by eight concurrent
// writers, each to its own key. PostgreSQL commits transactions that notify one at a time.
func BenchmarkNotifications(b *testing.B) {
	p := sqld.StartPostgres(b)
	for name, opts := range map[string][]sqlstore.Option{"without": nil, "with": {sqlstore.WithNotifications()}} {
		b.Run(name, func(b *testing.B) {
			db := p.Open(b, "postgres", "postgres")
			db.SetMaxIdleConns(8)
			s := open(b, db, sqlstore.Postgres(), opts...)
			var writers sync.WaitGroup
			var mu sync.Mutex
			var took []time.Duration
			began := time.Now()
			for i := range 8 {
				writers.Go(func() {
					key, version := fmt.Sprint(b.Name(), b.N, i), driver.Version("")
					for n := range b.N {
						sent := time.Now()
						v, err := s.CompareAndSwap(b.Context(), key, version, fmt.Appendf(make([]byte, 300), "%d", n))
						if err != nil {
							b.Error(err)
							return
						}
						version = v
						mu.Lock()
						took = append(took, time.Since(sent))
						mu.Unlock()
					}
				})
			}
			writers.Wait()
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Microseconds()), "write-p50-µs")
			b.ReportMetric(float64(len(took))/time.Since(began).Seconds(), "writes/s")
		})
	}
}

// BenchmarkIdleWatch measures the processor time of this process while it watches one election, and
// while its leader renews: it also writes every 5 s, which the case without a watch shows alone.
func BenchmarkIdleWatch(b *testing.B) {
	for _, c := range []struct {
		name    string
		watches bool
		renews  bool
		opts    []sqlstore.Option
	}{
		{"renewals without a watch", false, true, nil},
		{"renewals and a watch", true, true, nil},
		{"a watch", true, false, nil},
		{"a watch that asks every 10 ms", true, false, []sqlstore.Option{inBubble}},
	} {
		b.Run(c.name, func(b *testing.B) {
			s := openPushing(b, filepath.Join(b.TempDir(), "elections.db"), c.opts...)
			version, err := s.CompareAndSwap(b.Context(), "k", "", make([]byte, 300))
			must(b, err)
			if c.watches {
				stop, err := s.Watch(b.Context(), "k", func(driver.Entry) {})
				must(b, err)
				defer stop()
				time.Sleep(2 * time.Second) // the looks after the start do not count
			}
			for b.Loop() {
				began, before := time.Now(), machine.CPU()
				for range 6 {
					if c.renews {
						version, err = s.CompareAndSwap(b.Context(), "k", version, make([]byte, 300))
						must(b, err)
					}
					time.Sleep(5 * time.Second)
				}
				b.ReportMetric(100*float64(machine.CPU()-before)/float64(time.Since(began)), "%-of-a-core")
			}
		})
	}
}
