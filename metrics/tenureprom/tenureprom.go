// Package tenureprom exports the metrics of elections to Prometheus. Use it in a program that has a
// registry of client_golang. Without one, use [metrics.Set.WriteText].
//
//	set := metrics.New()
//	prometheus.MustRegister(tenureprom.NewCollector(set))
//	e, err := tenure.New(store, "job", tenure.Config{Metrics: set})
//
// The names of the metrics are those of [metrics.Definitions].
package tenureprom

import (
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/tenure-go/tenure/metrics"
	"google.golang.org/protobuf/proto"
)

// NewCollector returns a Collector of the metrics of a Set, for a Registerer. To register the Sets
// of several stores, wrap the Registerer for each with a label, by prometheus.WrapRegistererWith.
func NewCollector(set *metrics.Set) prometheus.Collector {
	c := &collector{set: set, descs: map[*metrics.Definition]*prometheus.Desc{}}
	for _, d := range metrics.Definitions() {
		c.descs[d] = prometheus.NewDesc(d.Name, d.Help, labels(d), nil)
	}
	return c
}

// labels are those that a definition has, in the order of a sample's values.
func labels(d *metrics.Definition) (names []string) {
	for _, name := range []string{d.Key, d.JobKey, d.Label, d.Label2} {
		if name != "" {
			names = append(names, name)
		}
	}
	return names
}

type collector struct {
	set   *metrics.Set
	descs map[*metrics.Definition]*prometheus.Desc
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(to chan<- *prometheus.Desc) {
	for _, d := range c.descs {
		to <- d
	}
}

// Collect implements prometheus.Collector.
func (c *collector) Collect(to chan<- prometheus.Metric) {
	c.set.Gather(func(s metrics.Sample) { to <- &sample{desc: c.descs[s.Definition], Sample: s} })
}

// sample is a metric. A scrape of a thousand elections has 17,000. Constant metrics of
// client_golang would need twice the allocations.
type sample struct {
	desc *prometheus.Desc
	metrics.Sample
}

// Desc implements prometheus.Metric.
func (s *sample) Desc() *prometheus.Desc { return s.desc }

// Write implements prometheus.Metric.
func (s *sample) Write(to *dto.Metric) error {
	to.Label = make([]*dto.LabelPair, 0, 3)
	for _, l := range [...]struct{ name, value *string }{{&s.Key, &s.Election}, {&s.JobKey, &s.Job}, {&s.Label, &s.Value}, {&s.Label2, &s.Value2}} {
		if *l.name != "" { // they are in the order of their names
			to.Label = append(to.Label, &dto.LabelPair{Name: l.name, Value: l.value})
		}
	}
	switch s.Kind {
	case metrics.Gauge:
		to.Gauge = &dto.Gauge{Value: &s.Number}
	case metrics.Counter:
		to.Counter = &dto.Counter{Value: &s.Number}
	case metrics.Histogram:
		to.Histogram = histogram(s.Bounds, s.Distribution)
	}
	return nil
}

// histogram adds up the buckets, as Prometheus wants them.
func histogram(bounds []float64, d *metrics.Distribution) *dto.Histogram {
	h := &dto.Histogram{SampleSum: &d.Sum}
	var n uint64
	for i, count := range d.Counts {
		n += count
		if i < len(bounds) {
			h.Bucket = append(h.Bucket, &dto.Bucket{UpperBound: &bounds[i], CumulativeCount: proto.Uint64(n)})
		}
	}
	h.SampleCount = &n
	return h
}
