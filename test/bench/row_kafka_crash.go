package main

import (
	"fmt"
	"time"

	"github.com/tenure-go/tenure/test/internal/figures"
)

var logCrashRow = row{
	name:  "kafka-crash",
	title: "Kafka: the leader's process is killed (SIGKILL), three candidates, lease 1 s",
	note: "When the lease ends, and where the measures begin and end, is as in row crash. On three real brokers after 2,000 writes, " +
		"as all rows of Kafka that name no other; in a quick run on kfake, which is in the process of the bench",
	measure: logCrash,
}

// logLease is the least that the store allows.
const logLease = time.Second

func logCrash(b *bench) ([]measure, error) {
	const groups = 3
	rounds := b.pick(1, 20)
	all, err := parallel(groups, func(i int) ([]failover, error) {
		c, err := b.logStage(scene{name: fmt.Sprintf("crash%d", i), members: 3, elections: 1, lease: logLease})
		defer c.dismiss()
		if err != nil {
			return nil, err
		}
		return c.crashes(rounds)
	})
	if err != nil {
		return nil, err
	}
	var late, total figures.Dist
	for _, f := range all {
		late, total = append(late, f.late), append(total, f.total)
	}
	return []measure{
		{what: "elected before the lease ended", value: fmt.Sprintf("%d of %d", early(late), len(late)), bound: "0",
			verdict: figures.Safe(early(late) == 0)},
		{what: "end of lease to next leader", value: late.String(), bound: "median 100 ms",
			verdict: figures.Within(late.Median() <= 100*time.Millisecond)},
		{what: "crash to next leader", value: total.String(), others: "goNELI 13.6 s median"},
	}, nil
}

// logStage is stage on the brokers that the rows of Kafka use.
func (b *bench) logStage(s scene) (c *cast, err error) {
	if s.kafka, err = b.usualBrokers(); err != nil {
		return &cast{}, err
	}
	return b.stage(s)
}
