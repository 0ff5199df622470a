package tenureotel_test

import (
	"context"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/attribute"
	otelprometheus "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/metric/metricdata/metricdatatest"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver/memory"
	"github.com/tenure-go/tenure/metrics"
	"github.com/tenure-go/tenure/metrics/tenureotel"
)

// played returns a Set of two elections with some events.
func played() *metrics.Set {
	set := metrics.New()
	add := func(name string, state metrics.State) *metrics.Member {
		return set.Add(name, func() (metrics.State, bool) { return state, true })
	}
	add("reports", metrics.State{Role: metrics.Following, Term: 7, Unhealthy: true}).Renewed(0.3)
	m := add("billing", metrics.State{Role: metrics.Leading, Term: 40, Lease: lease, Margin: time.Second, Overdue: true})
	m.Leaderless(1500 * time.Millisecond)
	m.Ended(metrics.Deposed)
	m.Alarmed(metrics.BadHistory)
	m.Dropped()
	m.Called(metrics.Write, metrics.OK, 3*time.Millisecond)
	m.Called(metrics.Read, metrics.Failed, time.Minute)
	j := set.AddJob("reports", "daily")
	j.Ran(metrics.RunLost)
	j.Know(metrics.JobFacts{Success: time.Unix(1700000000, 0), Took: time.Minute})
	return set
}

// collect reads producers as a reader of the SDK does.
func collect(t testing.TB, producers ...metric.Producer) []metricdata.ScopeMetrics {
	t.Helper()
	var options []metric.ManualReaderOption
	for _, p := range producers {
		options = append(options, metric.WithProducer(p))
	}
	reader := metric.NewManualReader(options...)
	metric.NewMeterProvider(metric.WithReader(reader))
	var all metricdata.ResourceMetrics
	if err := reader.Collect(context.Background(), &all); err != nil {
		t.Fatal(err)
	}
	return all.ScopeMetrics
}

// find returns a metric of a collection.
func find(t *testing.T, scope metricdata.ScopeMetrics, name string) metricdata.Metrics {
	t.Helper()
	i := slices.IndexFunc(scope.Metrics, func(m metricdata.Metrics) bool { return m.Name == name })
	if i < 0 {
		t.Fatalf("there is no %s", name)
	}
	return scope.Metrics[i]
}

func TestNamesAndUnits(t *testing.T) {
	var got []string
	for _, m := range collect(t, tenureotel.NewProducer(played()))[0].Metrics {
		if m.Description == "" {
			t.Errorf("%s has no description", m.Name)
		}
		kind, _, _ := strings.Cut(strings.TrimPrefix(fmt.Sprintf("%T", m.Data), "metricdata."), "[")
		got = append(got, strings.TrimSpace(fmt.Sprintf("%s %s %s", kind, m.Name, m.Unit)))
	}
	want := []string{
		"Gauge tenure.leading",
		"Gauge leader_election_master_status",
		"Gauge tenure.term",
		"Sum tenure.terms_ended",
		"Sum tenure.leaderless s",
		"Sum tenure.renewals",
		"Gauge tenure.lease s",
		"Gauge tenure.margin s",
		"Gauge tenure.overdue",
		"Gauge tenure.unhealthy",
		"Sum tenure.alarms",
		"Gauge tenure.elections",
		"Sum tenure.events_dropped",
		"Gauge tenure.job_running",
		"Sum tenure.job_runs",
		"Sum tenure.job_missed_ticks",
		"Sum tenure.job_warnings",
		"Gauge tenure.job_last_success_timestamp s",
		"Gauge tenure.job_last_failure_timestamp s",
		"Gauge tenure.job_due_timestamp s",
		"Gauge tenure.job_last_duration s",
		"Sum tenure.store_calls",
		"Histogram tenure.store_call_duration s",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// The start time of a sum is the start of the counting. For an election this is later than for its
// Set.
func TestDataPoints(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		set, began := metrics.New(), time.Now()
		time.Sleep(time.Hour)
		added := time.Now()
		m := set.Add("job", func() (metrics.State, bool) { return metrics.State{Role: metrics.Leading}, true })
		m.Ended(metrics.Expired)
		m.Called(metrics.Write, metrics.OK, 2*time.Millisecond)
		m.Called(metrics.Write, metrics.Failed, time.Minute)
		time.Sleep(time.Minute)
		now := time.Now()
		scope := collect(t, tenureotel.NewProducer(set))[0]
		metricdatatest.AssertAggregationsEqual(t, metricdata.Gauge[float64]{
			DataPoints: []metricdata.DataPoint[float64]{{
				Attributes: attribute.NewSet(attribute.String("election", "job")), StartTime: added, Time: now, Value: 1,
			}},
		}, find(t, scope, "tenure.leading").Data)

		ended := func(reason string, n float64) metricdata.DataPoint[float64] {
			return metricdata.DataPoint[float64]{
				Attributes: attribute.NewSet(attribute.String("election", "job"), attribute.String("reason", reason)),
				StartTime:  added, Time: now, Value: n,
			}
		}
		metricdatatest.AssertAggregationsEqual(t, metricdata.Sum[float64]{
			DataPoints: []metricdata.DataPoint[float64]{
				ended("released", 0), ended("expired", 1), ended("deposed", 0), ended("overrun", 0), ended("handed-over", 0),
			},
			Temporality: metricdata.CumulativeTemporality, IsMonotonic: true,
		}, find(t, scope, "tenure.terms_ended").Data)

		bounds := []float64{0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10}
		took := func(operation string, count uint64, sum float64, counts ...uint64) metricdata.HistogramDataPoint[float64] {
			return metricdata.HistogramDataPoint[float64]{
				Attributes: attribute.NewSet(attribute.String("operation", operation)), StartTime: began, Time: now,
				Count: count, Sum: sum, Bounds: bounds, BucketCounts: append(counts, make([]uint64, 14-len(counts))...),
			}
		}
		metricdatatest.AssertAggregationsEqual(t, metricdata.Histogram[float64]{
			DataPoints: []metricdata.HistogramDataPoint[float64]{
				took("read", 0, 0), took("write", 2, 60.002, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1), took("watch", 0, 0),
			},
			Temporality: metricdata.CumulativeTemporality,
		}, find(t, scope, "tenure.store_call_duration").Data)
		for _, name := range []string{"tenure.events_dropped", "tenure.store_calls"} {
			if at := find(t, scope, name).Data.(metricdata.Sum[float64]).DataPoints[0].StartTime; !at.Equal(began) {
				t.Errorf("%s begins at %v, want %v", name, at, began)
			}
		}
	})
}

// The producers of two stores have an attribute each. A summary names no election.
func TestSeveralStores(t *testing.T) {
	summary := metrics.NewSummary()
	for _, name := range []string{"shard-1", "shard-2"} {
		summary.Add(name, func() (metrics.State, bool) { return metrics.State{Role: metrics.Leading}, true })
	}
	scopes := collect(t,
		tenureotel.NewProducer(played(), attribute.String("store", "nats")),
		tenureotel.NewProducer(summary, attribute.String("store", "postgres")))
	metricdatatest.AssertHasAttributes(t, scopes[0], attribute.String("store", "nats"))
	metricdatatest.AssertHasAttributes(t, scopes[1], attribute.String("store", "postgres"))
	metricdatatest.AssertAggregationsEqual(t, metricdata.Gauge[float64]{
		DataPoints: []metricdata.DataPoint[float64]{{Attributes: attribute.NewSet(attribute.String("store", "postgres")), Value: 2}},
	}, find(t, scopes[1], "tenure.leading").Data, metricdatatest.IgnoreTimestamp())
}

// OpenTelemetry's own exporter makes the same series as package tenureprom, so alerts and boards
// work for both.
func TestSeriesInPrometheus(t *testing.T) {
	set, registry := played(), prometheus.NewPedanticRegistry()
	exporter, err := otelprometheus.New(otelprometheus.WithRegisterer(registry), otelprometheus.WithoutScopeInfo(),
		otelprometheus.WithoutTargetInfo(), otelprometheus.WithProducer(tenureotel.NewProducer(set)))
	if err != nil {
		t.Fatal(err)
	}
	metric.NewMeterProvider(metric.WithReader(exporter))
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got, want := map[string]float64{}, map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			series := []string{f.GetType().String(), f.GetName(), f.GetHelp()}
			for _, l := range m.GetLabel() {
				series = append(series, l.GetName()+"="+l.GetValue())
			}
			got[strings.Join(series, " ")] = m.GetGauge().GetValue() + m.GetCounter().GetValue() + m.GetHistogram().GetSampleSum()
		}
	}
	types := map[metrics.Kind]string{metrics.Gauge: "GAUGE", metrics.Counter: "COUNTER", metrics.Histogram: "HISTOGRAM"}
	set.Gather(func(s metrics.Sample) {
		series := []string{types[s.Kind], s.Name, s.Help}
		for _, l := range []struct{ name, value string }{{s.Key, s.Election}, {s.JobKey, s.Job}, {s.Label, s.Value}, {s.Label2, s.Value2}} {
			if l.name != "" {
				series = append(series, l.name+"="+l.value)
			}
		}
		if s.Distribution != nil {
			s.Number = s.Distribution.Sum
		}
		want[strings.Join(series, " ")] = s.Number
	})
	for _, series := range slices.Sorted(maps.Keys(want)) {
		if n, ok := got[series]; !ok || n != want[series] {
			t.Errorf("%s is %v (there: %v), want %v", series, n, ok, want[series])
		}
		delete(got, series)
	}
	for series := range got {
		t.Errorf("there is also %s", series)
	}
}

// BenchmarkProduce measures one collection.
func BenchmarkProduce(b *testing.B) {
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
			producer := tenureotel.NewProducer(set)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := producer.Produce(b.Context()); err != nil {
					b.Fatal(err)
				}
			}
			runtime.KeepAlive(all)
		})
	}
}
