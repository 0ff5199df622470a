package main

import (
	"fmt"
	"time"

	"github.com/tenure-go/tenure/test/internal/figures"
	"github.com/tenure-go/tenure/test/internal/machine"
)

var logRestartRow = row{
	name:  "kafka-restart",
	title: "Kafka: all brokers are restarted (SIGTERM), the next when all copies are complete again, lease 5 s",
	note: "Three candidates and three elections, each in a topic that another broker leads. A run is a restart of all three brokers (in a quick " +
		"run, of one). Kept is an election in which nobody was elected from the first signal until all was as before and renewed once more. " +
		"The time without a write is from the answer to one renewal to that to the next; a third of the lease is the interval",
	measure: logRestart,
}

func logRestart(b *bench) ([]measure, error) {
	if !b.brokersWanted() {
		return []measure{needsBrokers}, nil
	}
	f, err := b.field("restart", 5*time.Second)
	defer f.dismiss()
	if err != nil {
		return nil, err
	}
	n, whole := b.repeat(1, 10), 0
	kept, gaps := 0, figures.Dist{}
	for run := range n {
		all, err := f.restartAll(b.pick(1, len(f.kafka.addresses)))
		if err != nil {
			return nil, err
		}
		before := kept
		for _, h := range all {
			gaps = append(gaps, h.gap)
			if h.kept {
				kept++
			}
		}
		if kept-before == len(all) {
			whole++
		}
		fmt.Fprintf(b.log, "  %d of %d runs kept all leaders; the longest time without a write was %s\n", whole, run+1, figures.Show(gaps.Max()))
	}
	return []measure{
		{what: "runs in which all leaders were kept", value: fmt.Sprintf("%d of %d", whole, n), bound: "all", verdict: figures.Within(whole == n)},
		{what: "elections that kept theirs", value: fmt.Sprintf("%d of %d", kept, len(gaps))},
		{what: "longest time without a write", value: gaps.String()},
		f.judge(n),
	}, nil
}

// needsBrokers is the only line of a row that cannot be measured on kfake.
var needsBrokers = measure{what: "not measured: no broker of kfake ends", value: "a quick run has real ones with -brokers"}

// restartAll restarts the first n brokers.
func (f *field) restartAll(n int) ([]crop, error) {
	began := machine.Now()
	for broker := 1; broker <= n; broker++ {
		if err := f.kafka.Stop(broker); err != nil {
			return nil, err
		}
		if err := f.mend(); err != nil {
			return nil, err
		}
	}
	all := f.reap(began)
	for _, h := range all {
		f.explain(h, began)
	}
	return all, nil
}
