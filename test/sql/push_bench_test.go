//go:build integration

package sql

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/pgxstore"
	"github.com/tenure-go/tenure/driver/sqlstore"
	"github.com/tenure-go/tenure/test/internal/machine"
	"github.com/tenure-go/tenure/test/internal/sqld"
)

// timed records when each write was sent and how long it took.
type timed struct {
	*pgxstore.Store
	mu     *sync.Mutex
	writes *[]*written
}

type written struct {
	sent time.Time
	took time.Duration // 0 before the answer
}

// CompareAndSwap records the time.
func (s timed) CompareAndSwap(ctx context.Context, key string, prev driver.Version, value []byte) (driver.Version, error) {
	w := &written{sent: time.Now()}
	s.mu.Lock()
	*s.writes = append(*s.writes, w)
	s.mu.Unlock()
	v, err := s.Store.CompareAndSwap(ctx, key, prev, value)
	s.mu.Lock()
	defer s.mu.Unlock()
	w.took = time.Since(w.sent)
	return v, err
}

// BenchmarkHandOver measures hand-overs to a named successor on PostgreSQL with pushes. It measures
// the time from the release until the next leader leads, and the time of its two writes.
func BenchmarkHandOver(b *testing.B) {
	p := sqld.StartPostgres(b)
	dsn := p.DSN("postgres", "postgres")
	var mu sync.Mutex
	var writes []*written
	members := map[string]*tenure.Election{}
	type won struct {
		id string
		at time.Time
	}
	leads := make(chan won)
	ctx, cancel := context.WithCancel(b.Context())
	var all sync.WaitGroup
	for _, id := range []string{"a", "b", "c"} {
		e, err := tenure.New(timed{pushes(b, dsn, dsn), &mu, &writes}, "billing", tenure.Config{ID: id})
		must(b, err)
		members[id] = e
		all.Go(func() {
			_ = e.Run(ctx, func(ctx context.Context, _ *tenure.Term) error {
				select {
				case leads <- won{id, time.Now()}:
					<-ctx.Done()
				case <-ctx.Done():
				}
				return nil
			})
		})
	}
	now := <-leads
	var whole, commits []time.Duration
	for b.Loop() {
		mu.Lock()
		writes = nil
		mu.Unlock()
		next := map[string]string{"a": "b", "b": "c", "c": "a"}[now.id]
		must(b, members[now.id].HandOver(ctx, next))
		now = <-leads
		mu.Lock()
		last := writes[len(writes)-2:] // the release, and the claim
		whole = append(whole, now.at.Sub(last[0].sent))
		if last[0].took > 0 && last[1].took > 0 {
			commits = append(commits, last[0].took+last[1].took)
		}
		mu.Unlock()
	}
	cancel()
	all.Wait()
	slices.Sort(whole)
	slices.Sort(commits)
	b.ReportMetric(float64(whole[len(whole)/2].Microseconds()), "hand-over-p50-µs")
	b.ReportMetric(float64(commits[len(commits)/2].Microseconds()), "both-writes-p50-µs")
}

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
