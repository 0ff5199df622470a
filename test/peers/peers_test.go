package main

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tenure-go/tenure/internal/witness"
)

// TestOverlap counts answers from reports as members send them.
func TestOverlap(t *testing.T) {
	const ms = int64(time.Millisecond)
	for _, c := range []struct {
		name, why string
		reports   []report // in turn of the members a and b
		want      witness.Verdict
	}{
		{
			"in turn", "b leads after the last answer of a",
			[]report{{Began: 10 * ms, Acts: []int64{10 * ms, 12 * ms}}, {Began: 20 * ms, Acts: []int64{20 * ms}}},
			witness.Verdict{Terms: 2, Acts: 3},
		},
		{
			"planted overlap", "two answers of a come after the first one of b, the last one 30 ms after it",
			[]report{
				{Began: 10 * ms, Acts: []int64{10 * ms}}, {Began: 20 * ms, Acts: []int64{20 * ms, 22 * ms}},
				{Began: 10 * ms, Acts: []int64{12 * ms, 21 * ms, 50 * ms}},
			},
			witness.Verdict{Terms: 2, Acts: 6, Stale: 2, Overlap: 30 * time.Millisecond},
		},
		{
			"the leader again", "a leads a second time, which is a term of its own",
			[]report{
				{Began: 10 * ms, Acts: []int64{10 * ms}}, {Began: 20 * ms, Acts: []int64{20 * ms}},
				{Began: 30 * ms, Acts: []int64{30 * ms}},
			},
			witness.Verdict{Terms: 3, Acts: 3},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			var trial trial
			members := []*member{{id: "a"}, {id: "b"}}
			for i, r := range c.reports {
				r.What = acted
				trial.hear(members[i%2], r)
			}
			if got := trial.book.Judge(); got != c.want {
				t.Errorf("%+v, want %+v: %s", got, c.want, c.why)
			}
		})
	}
}

// sample is a peer with two crashes, and one cut with two leaders.
func sample(name string) *result {
	stale := witness.Verdict{Stale: 7, Overlap: 800 * time.Millisecond}
	return &result{
		peer: peer{name: name, store: "etcd", sources: []string{"etcd"}}, lease: 2 * time.Second, requests: 61.6,
		outcomes: []outcome{
			{what: crash, next: true, took: 2 * time.Second}, {what: crash}, {what: crash, unsettled: true},
			{what: handOver, next: true, took: 5 * time.Millisecond},
			{what: cut, next: true, took: 2 * time.Second, Verdict: stale},
			{what: freeze}, {what: freeze},
		},
		crowd: crowd{elections: 10, goroutines: 12, bytes: 2048},
	}
}

func TestTable(t *testing.T) {
	r := sample("other")
	want := []string{"etcd", "other", "1.00 (1.00 to 1.00), none in 1 of 2; unsettled in 1", "5.0 ms", "no next leader", "**1 of 1**",
		"800 ms", "62", "12 for 10", "2.0 KB"}
	if got := r.cells(); len(got) != len(columns) || !slices.Equal(got[:len(want)], want) {
		t.Errorf("%q, want %q and the lines", got, want)
	}
	direct := result{peer: peer{direct: true}}
	got := direct.cells()
	for _, column := range []string{"cut off: stale yes in", "sends/min"} {
		if cell := got[slices.Index(columns, column)]; cell != notMeasured {
			t.Errorf("%s of a client past the relays: %s, want %s", column, cell, notMeasured)
		}
	}
}

// TestFault: stale answers of Tenure fail the run, and those of others are results.
func TestFault(t *testing.T) {
	if err := sample("other").fault(); err != nil {
		t.Error(err)
	}
	if err := sample(tenureName).fault(); err == nil || !strings.Contains(err.Error(), "cut: two led in 1 of 1 runs") {
		t.Error(err)
	}
}

func TestPlot(t *testing.T) {
	drawn := plot([]*result{sample("other")})
	for _, want := range []string{"other, etcd", `<circle cx="390"`, `width="80" height="5"`} {
		if !strings.Contains(drawn, want) {
			t.Errorf("no %s in %s", want, drawn)
		}
	}
}

func TestLines(t *testing.T) {
	code := "package x\n\nimport (\n\t\"a\"\n)\n\n// F is.\nfunc F() {\n\tg()\n}\n"
	if n := lines(code); n != 3 {
		t.Errorf("%d lines, want 3: imports, comments and empty lines do not count", n)
	}
	for _, p := range peers {
		if p.lines() == 0 {
			t.Errorf("%s has no code", p.name)
		}
	}
}

// TestAsk: a question has the stamp from before it, a term ends with a no, and a new yes begins
// another term.
func TestAsk(t *testing.T) {
	answers := []bool{true, true, false, true, false}
	var said []report
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	ask(ctx, func() bool {
		if len(answers) == 0 {
			stop()
			return false
		}
		yes := answers[0]
		answers = answers[1:]
		return yes
	}, func(r report) { said = append(said, r) })
	if len(said) != 2 || len(said[0].Acts) != 2 || len(said[1].Acts) != 1 || said[0].Began == said[1].Began {
		t.Errorf("%+v, want two terms with 2 and 1 answers", said)
	}
	for _, r := range said {
		if r.Began != r.Acts[0] {
			t.Errorf("a term began at %d, and its first answer was at %d", r.Began, r.Acts[0])
		}
	}
}
