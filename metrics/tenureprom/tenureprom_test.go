package tenureprom_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver/memory"
	"github.com/tenure-go/tenure/metrics"
	"github.com/tenure-go/tenure/metrics/tenureprom"
)

// played returns a Set in which each metric has another value.
func played() *metrics.Set {
	set := metrics.New()
	for i, name := range []string{"billing", "reports"} {
		m := set.Add(name, func() (metrics.State, bool) {
			return metrics.State{
				Role: metrics.Role(2 + i), Term: uint64(40 + i), Lease: 15 * time.Second, Margin: 300 * time.Millisecond,
				Overdue: i == 0, Unhealthy: i == 0,
			}, true
		})
		m.Leaderless(1500 * time.Millisecond)
		for n, left := range []float64{0.6, 0.6, 0.6, 0.3, 0.3, 0.1} {
			m.Renewed(left)
			m.Called(metrics.Write, metrics.OK, time.Duration(n)*time.Millisecond)
		}
		m.Called(metrics.Read, metrics.Timeout, 5*time.Second)
		m.Called(metrics.Read, metrics.Failed, time.Minute)
		m.Ended(metrics.Expired)
		m.Alarmed(metrics.BadHistory)
		m.Dropped()
	}
	j := set.AddJob("reports", "daily")
	j.Running(true)
	j.Ran(metrics.RunFinished)
	j.Missed(metrics.MissLate, 3)
	j.Warned(metrics.WarnClock)
	j.Know(metrics.JobFacts{
		Success: time.UnixMilli(1700000000250), Loss: time.Unix(1600000000, 0), Took: 90 * time.Second,
		Due: [3]time.Time{time.Unix(1700003600, 0), time.Unix(1700007200, 0), time.Unix(1700010800, 0)},
	})
	return set
}

func TestExposition(t *testing.T) {
	c := tenureprom.NewCollector(played())
	if problems, err := testutil.CollectAndLint(c); err != nil || len(problems) > 0 {
		t.Errorf("%v, %v", problems, err)
	}
	golden, err := os.Open("testdata/exposition.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer golden.Close()
	if err := testutil.CollectAndCompare(c, golden); err != nil {
		t.Error(err)
	}
}

// A registry with checks accepts two stores, and a summary beside series for each election.
func TestSetsOfSeveralStores(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	summary := metrics.NewSummary()
	summary.Add("shard-1", func() (metrics.State, bool) { return metrics.State{Role: metrics.Leading}, true })
	summary.Add("shard-2", func() (metrics.State, bool) { return metrics.State{Role: metrics.Leading}, true })
	for store, set := range map[string]*metrics.Set{"nats": played(), "postgres": summary} {
		in := prometheus.WrapRegistererWith(prometheus.Labels{"store": store}, registry)
		in.MustRegister(tenureprom.NewCollector(set))
	}
	var text strings.Builder
	w := httptest.NewRecorder()
	promhttp.HandlerFor(registry, promhttp.HandlerOpts{ErrorHandling: promhttp.HTTPErrorOnError}).
		ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
	text.WriteString(w.Body.String())
	for _, line := range []string{
		`tenure_leading{election="reports",store="nats"} 1`,
		`tenure_leading{election="",store="postgres"} 2`,
		`tenure_elections{role="leading",store="postgres"} 2`,
	} {
		if !strings.Contains(text.String(), line) {
			t.Errorf("no line %s in\n%s", line, text.String())
		}
	}
}

// metrics.Set itself writes the same text as a registry of client_golang, except for the order.
func TestTextWithoutTheLibrary(t *testing.T) {
	set := played()
	set.AddJob("reports", "a \"quoted\" job")
	set.Add("a \"quoted\" \\ name\nof two lines", func() (metrics.State, bool) { return metrics.State{}, true })
	var text strings.Builder
	if err := set.WriteText(&text); err != nil {
		t.Fatal(err)
	}
	if err := testutil.CollectAndCompare(tenureprom.NewCollector(set), strings.NewReader(text.String())); err != nil {
		t.Error(err)
	}
}

// BenchmarkScrape measures a compressed scrape, as Prometheus requests it.
func BenchmarkScrape(b *testing.B) {
	for _, n := range []int{1, 1000} {
		b.Run(fmt.Sprint("elections=", n), func(b *testing.B) {
			set := metrics.New()
			g, err := tenure.NewGroup(memory.New(), tenure.Config{Metrics: set})
			if err != nil {
				b.Fatal(err)
			}
			all := make([]*tenure.Election, n)
			for i := range all {
				if all[i], err = g.Election(fmt.Sprint("shard-", i)); err != nil {
					b.Fatal(err)
				}
			}
			registry := prometheus.NewRegistry()
			registry.MustRegister(tenureprom.NewCollector(set))
			handler := promhttp.HandlerFor(registry, promhttp.HandlerOpts{})
			request := httptest.NewRequest(http.MethodGet, "/metrics", nil)
			request.Header.Set("Accept-Encoding", "gzip")
			var body []byte
			b.ReportAllocs()
			for b.Loop() {
				w := httptest.NewRecorder()
				handler.ServeHTTP(w, request)
				body = w.Body.Bytes()
			}
			if lines := strings.Count(unzip(b, body), "\n"); lines < 17*n {
				b.Fatalf("%d lines", lines)
			}
			runtime.KeepAlive(all)
		})
	}
}

func unzip(t testing.TB, body []byte) string {
	t.Helper()
	r, err := gzip.NewReader(bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
