package main

import (
	"fmt"
	"time"

	"github.com/tenure-go/tenure/test/internal/figures"
)

var logStoreRow = row{
	name:    "kafka-store",
	title:   "Kafka: single operations of driver/kafkalog, one after another",
	note:    "From the call to its return, with a value of 300 bytes, on kfake in the process that asks and on three real brokers with three copies",
	measure: logLatency,
}

func logLatency(b *bench) ([]measure, error) {
	fake, err := b.fakeBrokers()
	if err != nil {
		return nil, err
	}
	found, err := b.logOperations(fake, b.pick(1000, 5000), 150*time.Microsecond)
	if err != nil || !b.brokersWanted() {
		return found, err
	}
	real, err := b.realBrokers()
	if err != nil {
		return found, err
	}
	more, err := b.logOperations(real, b.pick(200, 2000), 5*time.Millisecond)
	return append(found, more...), err
}

func (b *bench) logOperations(k *brokers, n int, bound time.Duration) ([]measure, error) {
	topic, err := k.newTopic(b.ctx)
	if err != nil {
		return nil, err
	}
	s, err := k.open(b.ctx, topic)
	if err != nil {
		return nil, err
	}
	defer func() { _ = s.Close() }()
	reads, swaps, err := b.operations(s, n)
	return []measure{
		{what: k.name + ": Read", value: fmt.Sprint(reads)},
		{what: k.name + ": CompareAndSwap", value: fmt.Sprint(swaps), bound: "median " + figures.Show(bound),
			verdict: figures.Within(swaps.Median() <= bound)},
	}, err
}
