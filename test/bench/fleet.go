package main

import (
	"context"
	"errors"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/fleet"
	"github.com/tenure-go/tenure/test/internal/machine"
)

// sail takes part in a fleet, whose work has no goroutine and says when it begins and ends.
func (w *worker) sail(c command) error {
	store, err := w.source.open(c)
	if err != nil {
		return err
	}
	f, err := fleet.New(store, "fleet", fleet.Config{
		Election: tenure.Config{ID: w.id, Lease: c.Lease}, Elections: c.Elections, Spread: true,
	})
	if err != nil {
		return err
	}
	if w.ctx == nil {
		w.ctx, w.cancel = context.WithCancel(context.Background())
	}
	run := make(chan error, 1)
	go func(ctx context.Context) { run <- f.Run(ctx, shards{w}) }(w.ctx)
	w.runs = append(w.runs, run)
	w.meter.take()
	return nil
}

// shards is work without a goroutine.
type shards struct{ *worker }

func (s shards) Elected(_ context.Context, t *tenure.Term) error {
	s.say(report{What: leads, Election: t.Election(), Token: t.Token(), At: machine.Now()})
	return nil
}

func (s shards) Stop(ctx context.Context, t *tenure.Term) error {
	s.say(report{What: left, Election: t.Election(), Token: t.Token(), At: machine.Now(), Expired: errors.Is(context.Cause(ctx), tenure.ErrExpired)})
	return nil
}
