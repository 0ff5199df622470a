package tenureotel_test

import (
	"context"
	"fmt"
	"log"

	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver/memory"
	"github.com/tenure-go/tenure/metrics"
	"github.com/tenure-go/tenure/metrics/tenureotel"
)

// In production, use a periodic reader, and exporters of OTLP.
func Example() {
	set := metrics.New()
	reader := metric.NewManualReader(metric.WithProducer(tenureotel.NewProducer(set)))
	meters := metric.NewMeterProvider(metric.WithReader(reader))
	exporter := tracetest.NewInMemoryExporter()
	traces := sdktrace.NewTracerProvider(sdktrace.WithSyncer(exporter))
	spans := tenureotel.NewTracer(traces, nil)

	cfg := tenure.Config{ID: "node-1", Metrics: set, OnEvent: spans.OnEvent}
	e, err := tenure.New(memory.New(), "billing", cfg)
	if err != nil {
		log.Fatal(err)
	}
	err = e.Run(context.Background(), func(context.Context, *tenure.Term) error { return nil })
	if err != nil {
		log.Fatal(err)
	}

	var all metricdata.ResourceMetrics
	if err := reader.Collect(context.Background(), &all); err != nil {
		log.Fatal(err)
	}
	for _, m := range all.ScopeMetrics[0].Metrics {
		if m.Name == "tenure.terms_ended" {
			released := m.Data.(metricdata.Sum[float64]).DataPoints[0]
			fmt.Println(m.Name, released.Attributes.ToSlice(), released.Value)
		}
	}
	for _, span := range exporter.GetSpans() {
		fmt.Println(span.Name, span.Attributes[0], span.Events[0].Name)
	}

	spans.End() // before the Shutdown of the provider
	_ = traces.Shutdown(context.Background())
	_ = meters.Shutdown(context.Background())
	// Output:
	// tenure.terms_ended [{"election":"billing"} {"reason":"released"}] 1
	// tenure.term {"tenure.election":"billing"} tenure.released
}
