package main

import (
	"context"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/tenure-go/tenure/driver/natskv"
)

func tenureOnNATS(at place) (client, error) {
	nc, err := nats.Connect("nats://"+at.Address(), nats.MaxReconnects(-1))
	if err != nil {
		return nil, err
	}
	js, err := jetstream.New(nc)
	if err != nil {
		return nil, err
	}
	s, err := natskv.Open(context.Background(), js, at.Bucket)
	return withTenure(at, s, err)
}
