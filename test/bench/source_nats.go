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

// natsSource is one connection, or one for each bucket.
type natsSource struct {
	say    func(report)
	js     jetstream.JetStream
	opts   []natskv.Option
	stores map[string]*natskv.Store // by bucket
}

func dialNATS(me identity, say func(report)) (*natsSource, error) {
	tell := func(*nats.Conn) { say(report{What: connected, At: machine.Now()}) }
	name, opts := me.ID, []natskv.Option{natskv.Pristine()}
	if me.Own {
		name, opts = me.ID+" (base)", append(opts, natskv.OwnConnection(nats.Name(me.ID)))
	}
	nc, err := nats.Connect(me.URL, nats.Name(name), nats.DontRandomize(), nats.MaxReconnects(-1), nats.ReconnectWait(20*time.Millisecond),
		nats.ReconnectHandler(tell))
	if err != nil {
		return nil, err
	}
	tell(nc)
	js, err := jetstream.New(nc)
	return &natsSource{say: say, js: js, opts: opts, stores: map[string]*natskv.Store{}}, err
}

func (s *natsSource) open(c command) (driver.Store, error) {
	if last := s.stores[c.Bucket]; last != nil {
		_ = last.Close()
	}
	store, err := s.try(c.Bucket)
	if err != nil {
		return nil, err
	}
	s.stores[c.Bucket] = store
	if c.Quiet {
		return store, nil
	}
	return observed{store, s.say}, nil
}

// try opens a bucket, again where a busy server has just cut the connection.
func (s *natsSource) try(bucket string) (store *natskv.Store, err error) {
	for end := time.Now().Add(attempt); time.Now().Before(end); {
		if store, err = natskv.Open(context.Background(), s.js, bucket, s.opts...); err == nil {
			break
		}
		time.Sleep(settle)
	}
	return store, err
}

func (*natsSource) configure(context.Context, command, string, *tenure.Config) error { return nil }
