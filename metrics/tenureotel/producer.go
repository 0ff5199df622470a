// Package tenureotel exports the metrics of elections, and a span for each term, to OpenTelemetry.
// Use it in a program that has the SDK of OpenTelemetry. Metrics and spans work without each other.
//
//	set, spans := metrics.New(), tenureotel.NewTracer(otel.GetTracerProvider(), nil)
//	reader := metric.NewPeriodicReader(exporter, metric.WithProducer(tenureotel.NewProducer(set)))
//	otel.SetMeterProvider(metric.NewMeterProvider(metric.WithReader(reader)))
//	e, err := tenure.New(store, "job", tenure.Config{Metrics: set, OnEvent: spans.OnEvent})
package tenureotel

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/tenure-go/tenure/metrics"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/instrumentation"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
)

// scope names this package as the source of metrics and spans.
const scope = "github.com/tenure-go/tenure/metrics/tenureotel"

// NewProducer returns a Producer of the metrics of a Set, for [metric.WithProducer]. A periodic or
// manual reader calls it at each collection, and so does the exporter for Prometheus. Each data
// point gets the attributes. For the Sets of several stores, give each Producer an attribute that
// names its store.
//
// The names are those of [metrics.Definitions] in OpenTelemetry's form, such as
// tenure.store_call_duration with the unit s. An exporter for Prometheus turns them into the names
// of package tenureprom, so that the same alerts and dashboards fit.
//
// Sums and histograms are cumulative, even if the reader or its exporter prefers deltas, since the
// SDK does not convert the output of a Producer. If a system needs deltas, convert the sums and
// histograms in the collector, with the processor cumulativetodelta. Views do not apply either.
func NewProducer(set *metrics.Set, attributes ...attribute.KeyValue) metric.Producer {
	return &producer{set: set, attributes: slices.Clone(attributes)}
}

type producer struct {
	set        *metrics.Set
	attributes []attribute.KeyValue
}

// Produce implements metric.Producer.
func (p *producer) Produce(context.Context) ([]metricdata.ScopeMetrics, error) {
	c := collection{now: time.Now()}
	p.set.Gather(func(s metrics.Sample) { c.add(&s, p.labels(&s)) })
	c.flush()
	return []metricdata.ScopeMetrics{{Scope: instrumentation.Scope{Name: scope}, Metrics: c.all}}, nil
}

// labels returns the attributes of a sample.
func (p *producer) labels(s *metrics.Sample) attribute.Set {
	all := make([]attribute.KeyValue, 0, len(p.attributes)+3)
	all = append(all, p.attributes...)
	for _, l := range [...]struct{ key, value string }{{s.Key, s.Election}, {s.JobKey, s.Job}, {s.Label, s.Value}, {s.Label2, s.Value2}} {
		if l.value != "" { // a summary names no election
			all = append(all, attribute.String(l.key, l.value))
		}
	}
	return attribute.NewSet(all...)
}

// collection has the completed metrics, and the data points so far of the next one.
type collection struct {
	now        time.Time
	all        []metricdata.Metrics
	of         *metrics.Definition
	numbers    []metricdata.DataPoint[float64]
	histograms []metricdata.HistogramDataPoint[float64]
}

// add adds a sample. Those of one metric follow one another.
func (c *collection) add(s *metrics.Sample, labels attribute.Set) {
	if s.Definition != c.of {
		c.flush()
		c.of = s.Definition
	}
	if s.Kind != metrics.Histogram {
		c.numbers = append(c.numbers, metricdata.DataPoint[float64]{
			Attributes: labels, StartTime: s.Since, Time: c.now, Value: s.Number,
		})
		return
	}
	point := metricdata.HistogramDataPoint[float64]{
		Attributes: labels, StartTime: s.Since, Time: c.now,
		Bounds: s.Bounds, BucketCounts: s.Distribution.Counts, Sum: s.Distribution.Sum,
	}
	for _, n := range s.Distribution.Counts {
		point.Count += n
	}
	c.histograms = append(c.histograms, point)
}

// flush completes a metric.
func (c *collection) flush() {
	if c.of == nil {
		return
	}
	m := metricdata.Metrics{Name: name(c.of), Description: c.of.Help, Unit: c.of.Unit}
	const cumulative = metricdata.CumulativeTemporality
	switch c.of.Kind {
	case metrics.Gauge:
		m.Data = metricdata.Gauge[float64]{DataPoints: c.numbers}
	case metrics.Counter:
		m.Data = metricdata.Sum[float64]{DataPoints: c.numbers, Temporality: cumulative, IsMonotonic: true}
	case metrics.Histogram:
		m.Data = metricdata.Histogram[float64]{DataPoints: c.histograms, Temporality: cumulative}
	}
	c.all = append(c.all, m)
	c.numbers, c.histograms = make([]metricdata.DataPoint[float64], 0, len(c.numbers)), nil
}

// name returns the name of a metric in OpenTelemetry: in the namespace "tenure.", and without the
// endings that an exporter for Prometheus derives from the unit and the kind.
// leader_election_master_status is the name that boards know, and stays.
func name(d *metrics.Definition) string {
	name := strings.TrimSuffix(d.Name, "_total")
	if d.Unit == "s" {
		name = strings.TrimSuffix(name, "_seconds")
	}
	return strings.Replace(name, "tenure_", "tenure.", 1)
}
