package main

import (
	"time"

	"github.com/tenure-go/tenure/test/internal/figures"
)

var logStopRow = row{
	name:    "kafka-stop",
	title:   "Kafka: the leader is stopped gracefully (the context of Run ends), three candidates, lease 1 s",
	note:    "The measure is that of row stop",
	measure: logStop,
}

func logStop(b *bench) ([]measure, error) {
	kafka, err := b.usualBrokers()
	if err != nil {
		return nil, err
	}
	found, err := b.logHandovers(kafka, b.pick(50, 1000))
	if err != nil || !b.quick || !b.brokersWanted() {
		return found, err
	}
	if kafka, err = b.realBrokers(); err != nil {
		return found, err
	}
	more, err := b.logHandovers(kafka, 50)
	return append(found, more...), err
}

// logHandovers stops one leader after another.
func (b *bench) logHandovers(kafka *brokers, n int) ([]measure, error) {
	c, err := b.stage(scene{name: "stop", members: 3, elections: 1, lease: logLease, kafka: kafka})
	defer c.dismiss()
	if err != nil {
		return nil, err
	}
	if _, err := c.enthrone(); err != nil {
		return nil, err
	}
	c.role.Spread = 0
	d, err := c.stops(n)
	return []measure{{what: kafka.name + ": release sent to next leader", value: d.String(), bound: "median 15 ms, p99 50 ms",
		verdict: figures.Within(d.Median() <= 15*time.Millisecond && d.P99() <= 50*time.Millisecond), others: "goNELI 142 ms to close"}}, err
}
