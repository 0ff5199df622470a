package tenure

import (
	"testing"
	"time"

	"github.com/tenure-go/tenure/clock"
	"github.com/tenure-go/tenure/driver/memory"
	"github.com/tenure-go/tenure/metrics"
)

// meteredLeader returns a function that does the metering of one confirmed renewal.
func meteredLeader(t testing.TB) (renewal func()) {
	t.Helper()
	e, err := New(memory.New(), "job", Config{Metrics: metrics.New(), Lease: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	term, err := e.Campaign(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = term.Resign(t.Context()) })
	m := &e.runner
	var now clock.Reading
	m.step(func(at clock.Reading) { now = at })
	return func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.meter.confirmed.Mono-- // so that this renewal differs from the last one
		m.meter.called(metrics.Write, nil, time.Millisecond)
		m.meter.follow(m, now)
	}
}

func TestMetricsAllocateNothingInARenewal(t *testing.T) {
	if n := testing.AllocsPerRun(1000, meteredLeader(t)); n != 0 {
		t.Errorf("%v allocations in a renewal", n)
	}
}

// BenchmarkMeteredRenewal measures the metrics of one renewal, with a lock.
func BenchmarkMeteredRenewal(b *testing.B) {
	renewal := meteredLeader(b)
	b.ReportAllocs()
	for b.Loop() {
		renewal()
	}
}
