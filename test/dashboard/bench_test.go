//go:build integration && linux

package dashboard

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver/natskv"
	"github.com/tenure-go/tenure/internal/test/wait"
	"github.com/tenure-go/tenure/test/internal/machine"
)

// BenchmarkThousandElections measures the dashboard of a store that pushes. Another process leads
// all elections with the default lease.
func BenchmarkThousandElections(b *testing.B) {
	const n = 1000
	s := newStage(b)
	lead(b, s.server.URL(), n)
	s.startDashboard()
	wait.Until(b, "all are shown", func() bool { return s.healthy(b) == n })
	const measured = 20 * time.Second
	for b.Loop() {
		_, before := s.usage(b)
		time.Sleep(measured)
		m, after := s.usage(b)
		b.ReportMetric(100*(after-before).Seconds()/measured.Seconds(), "%core")
		b.ReportMetric(float64(m.Resident)/1e6, "MB")
	}
	p := openPage(b, s.url)
	p.until("a hundred rows", `document.querySelectorAll('tbody tr').length === 100`)
	b.ReportMetric(value[float64](p, "performance.now()"), "ms-first-view")
}

// lead leads elections in this process.
func lead(b *testing.B, url string, n int) {
	b.Helper()
	conn, err := nats.Connect(url)
	must(b, err)
	js, err := jetstream.New(conn)
	must(b, err)
	store, err := natskv.Open(wait.Context(b), js, "ELECTIONS", natskv.Pristine())
	must(b, err)
	g, err := tenure.NewGroup(store, tenure.Config{})
	must(b, err)
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("shard-%04d", i)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		done <- g.Run(ctx, tenure.Lead(func(ctx context.Context, _ *tenure.Term) error { <-ctx.Done(); return nil }), names...)
	}()
	b.Cleanup(func() { stop(); <-done; conn.Close() })
}

// healthy returns how many elections the dashboard shows as healthy.
func (s *stage) healthy(b *testing.B) int {
	response, err := http.Get(s.url + "api/overview") //nolint:noctx // a benchmark
	must(b, err)
	defer response.Body.Close()
	var o struct{ Counts map[string]int }
	must(b, json.NewDecoder(response.Body).Decode(&o))
	return o.Counts["ok"]
}

// usage returns the memory of the dashboard, and its processor time so far.
func (s *stage) usage(b *testing.B) (machine.Memory, time.Duration) {
	b.Helper()
	m, cpu, err := machine.Of(s.dashboard.PID())
	must(b, err)
	return m, cpu
}

// BenchmarkEventToBrowser measures the time from a claim, by the wall clock of the claimant, until
// a real browser shows the leader. It reports the median of twenty hand-overs.
func BenchmarkEventToBrowser(b *testing.B) {
	s := newStage(b)
	s.startDashboard("billing")
	s.start("billing", "node-1")
	s.start("billing", "node-2")
	p := openPage(b, s.url)
	leader := p.leads("billing", "node-1", "node-2")
	value[any](p, `(() => { // when the page first showed each leader
		window.shown = []
		const look = () => {
			const leader = `+leaderCell("billing")+`
			if (leader && leader !== '–' && leader !== window.shown.at(-1)?.leader) window.shown.push({ leader, at: Date.now() })
		}
		new MutationObserver(look).observe(document.body, { subtree: true, childList: true, characterData: true })
		look()
	})()`)
	var took []float64
	for b.Loop() {
		took = nil
		for range 20 {
			next := map[string]string{"node-1": "node-2", "node-2": "node-1"}[leader]
			s.do("hand-over", "--store", s.store, "--election", "billing", "--to", next)
			p.leads("billing", next)
			leader = next
			took = append(took, value[float64](p, `window.shown.at(-1).at`)-s.elected(b))
		}
	}
	slices.Sort(took)
	b.ReportMetric(took[len(took)/2], "ms-median")
	b.ReportMetric(took[len(took)-1], "ms-max")
}

// elected returns when the leader claimed, in milliseconds.
func (s *stage) elected(b *testing.B) float64 {
	e, err := s.bucket.Get(wait.Context(b), "billing")
	must(b, err)
	var record struct {
		Seq         int
		LastUpdated time.Time
	}
	if err := json.Unmarshal(e.Value(), &record); err != nil || record.Seq != 1 {
		b.Fatalf("%v, and the leader has renewed already: %s", err, e.Value())
	}
	return float64(record.LastUpdated.UnixMicro()) / 1000
}
