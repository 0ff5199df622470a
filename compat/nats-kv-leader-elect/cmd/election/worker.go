package main

import (
	"context"
	"log"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/tenure-go/tenure/compat/nats-kv-leader-elect"
)

// pace is the interval of a leader's work.
const pace = time.Second

// worker is one candidate.
type worker struct {
	name  string
	elect *election.Elector
}

func newWorker(name, key string, bucket nats.KeyValue, opts []election.Option) (*worker, error) {
	w := &worker{name: name}
	e, err := election.NewElection(name, key, bucket, append([]election.Option{
		election.OnWon(func() { w.say("became leader, with token %d", w.elect.Token()) }),
		election.OnLost(func() { w.say("lost leadership") }),
		election.OnCampaign(func(s election.State) { w.say("campaigning while in state %v", s) }),
		election.WithDebug(w.say),
	}, opts...)...)
	if err != nil {
		return nil, err
	}
	w.elect = e.(*election.Elector)
	return w, nil
}

func (w *worker) say(format string, a ...any) {
	log.Printf("%s: "+format, append([]any{w.name}, a...)...)
}

// run takes part, and works while it leads.
func (w *worker) run(ctx context.Context) {
	working := make(chan struct{})
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		defer close(working)
		w.work(ctx)
	}()
	w.say("starting election")
	if err := w.elect.Start(ctx); err != nil {
		w.say("the election has ended: %v", err)
	}
	cancel()
	<-working
}

func (w *worker) work(ctx context.Context) {
	tick := time.NewTicker(pace)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			if w.elect.IsLeader() {
				w.say("doing work")
			}
		case <-ctx.Done():
			return
		}
	}
}
