package main

import (
	"context"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tenure-go/tenure/driver/kafkalog"
)

func tenureOnKafka(at place) (client, error) {
	s, err := kafkalog.Open(context.Background(), []kgo.Opt{
		kgo.SeedBrokers(at.Addresses...),
		kgo.Dialer(at.DialContext),
	}, at.Bucket)
	return withTenure(at, s, err)
}
