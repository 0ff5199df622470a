package main

import (
	"fmt"
	"time"

	"github.com/tenure-go/tenure/test/internal/figures"
)

var logMemoryRow = row{
	name:  "kafka-memory",
	title: "Kafka: 200 elections by Start in one process over one client and topic, lease 15 s; and 20, each with a consumer group of its own that nominates",
	note: "One process leads all, another follows all, measured as in row crowd. Resident is the growth of the process as the system sees it, " +
		"after the free memory was returned, divided by the elections. A consumer group has a client of its own for each election",
	measure: logMemory,
}

func logMemory(b *bench) ([]measure, error) {
	crowds := []scene{
		{name: "memory", members: 2, elections: 200, lease: steadyLease},
		{name: "members", members: 2, elections: 20, lease: steadyLease, session: steadyLease},
	}
	return several(b, len(crowds), func(i int) ([]measure, error) { return b.logWeights(crowds[i]) })
}

func (b *bench) logWeights(s scene) ([]measure, error) {
	c, err := b.logStage(s)
	defer c.dismiss()
	if err != nil {
		return nil, err
	}
	c.role.Quiet = true
	leading, following, err := c.weigh(time.Duration(b.pick(3, 30)) * time.Second)
	if err != nil {
		return nil, err
	}
	return append(s.weights("following", following), s.weights("leading", leading)...), nil
}

// weights are what each further election costs, with the goroutine of a leader's work.
func (s scene) weights(what string, u usage) []measure {
	const most = 2e6
	what = s.mode() + ", " + what
	each := func(bytes uint64) string { return fmt.Sprintf("%.0f KB", float64(bytes)/float64(s.elections)/1000) }
	return []measure{
		{what: what + ": resident / heap, each further election", value: each(u.Resident) + " / " + each(u.Heap),
			bound: "below 2 MB", verdict: figures.Within(float64(u.Resident) < most*float64(s.elections)), others: "goNELI 24 MB"},
		{what: what + ": goroutines, at rest / most, each", others: "goNELI 8 threads",
			value: fmt.Sprintf("%.1f / %.1f", float64(u.Goroutines)/float64(s.elections), float64(u.Peak)/float64(s.elections))},
		{what: what + ": processor, all", value: percent(u)},
	}
}
