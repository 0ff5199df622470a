package main

import (
	"context"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/natskv"
	"github.com/tenure-go/tenure/test/internal/machine"
)

// natsSource is one connection.
type natsSource struct {
	say   func(report)
	js    jetstream.JetStream
	store *natskv.Store
}

func dialNATS(me identity, say func(report)) (*natsSource, error) {
	tell := func(*nats.Conn) { say(report{What: connected, At: machine.Now()}) }
	nc, err := nats.Connect(me.URL, nats.Name(me.ID), nats.MaxReconnects(-1), nats.ReconnectWait(20*time.Millisecond),
		nats.ReconnectHandler(tell))
	if err != nil {
		return nil, err
	}
	tell(nc)
	js, err := jetstream.New(nc)
	return &natsSource{say: say, js: js}, err
}

func (s *natsSource) open(c command) (driver.Store, error) {
	if s.store != nil {
		_ = s.store.Close()
	}
	var err error
	if s.store, err = natskv.Open(context.Background(), s.js, c.Bucket); err != nil {
		return nil, err
	}
	if c.Quiet {
		return s.store, nil
	}
	return observed{s.store, s.say}, nil
}

func (*natsSource) configure(*tenure.Config) {}
