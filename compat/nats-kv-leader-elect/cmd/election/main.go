// Command election is nats-kv-leader-elect's demonstration, on package election. It starts some
// workers. The workers of all such processes elect one leader, in the bucket DEMO_ELECTION. SIGINT
// and SIGTERM end it.
//
//	nats kv add --ttl 31s DEMO_ELECTION
//	CONTEXT=local election
//	nats kv del DEMO_ELECTION demo        forces a failover
//
// Its settings are environment variables:
//
//	NOSPLAY     1: no random wait, of up to 5 s, before the first campaign
//	KEY         the key to campaign for (demo)
//	CONTEXT     the context of the nats command to connect with (the selected one)
//	WORKERS     how many workers to start (10)
//	MIGRATING   1: workers of nats-kv-leader-elect's own demonstration take part
//
// It reads contexts with orbit.go/natscontext, which supports neither credentials that nsc looks
// up, nor user_jwt, nor Windows' certificate store.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"os/signal"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/synadia-io/orbit.go/natscontext"
	"github.com/tenure-go/tenure/compat/nats-kv-leader-elect"
)

func main() {
	if err := run(); err != nil {
		log.Fatal(err)
	}
}

// bucketName is the same as in nats-kv-leader-elect's demonstration.
const bucketName = "DEMO_ELECTION"

// run takes part until a signal comes, which is not an error.
func run() error {
	workers, err := strconv.Atoi(cmp.Or(os.Getenv("WORKERS"), "10"))
	if err != nil || workers < 1 {
		return fmt.Errorf("WORKERS is %q; it must be a number from 1 on", os.Getenv("WORKERS"))
	}
	var opts []election.Option
	if os.Getenv("NOSPLAY") == "1" {
		opts = append(opts, election.WithoutSplay())
	}
	if os.Getenv("MIGRATING") == "1" {
		opts = append(opts, election.Migrating())
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	at := os.Getenv("CONTEXT")
	nc, known, err := natscontext.Connect(at, nats.Name("election"), nats.MaxReconnects(-1))
	if err != nil {
		return fmt.Errorf("cannot connect with the context of the nats command (CONTEXT=%s): %w", at, err)
	}
	defer nc.Close()
	bucket, err := open(nc, known)
	if err != nil {
		return err
	}
	return elect(ctx, bucket, workers, opts)
}

func open(nc *nats.Conn, known natscontext.Settings) (nats.KeyValue, error) {
	var opts []nats.JSOpt
	switch {
	case known.JSDomain != "":
		opts = append(opts, nats.Domain(known.JSDomain))
	case known.JSAPIPrefix != "":
		opts = append(opts, nats.APIPrefix(known.JSAPIPrefix))
	}
	js, err := nc.JetStream(opts...)
	if err != nil {
		return nil, err
	}
	bucket, err := js.KeyValue(bucketName)
	if errors.Is(err, nats.ErrBucketNotFound) {
		return nil, fmt.Errorf("there is no bucket %s; make it with: nats kv add --ttl 31s %s", bucketName, bucketName)
	}
	if err != nil {
		return nil, fmt.Errorf("bucket %s: %w", bucketName, err)
	}
	return bucket, nil
}

// elect starts the workers and waits for them.
func elect(ctx context.Context, bucket nats.KeyValue, workers int, opts []election.Option) error {
	var all []*worker
	for i := range workers {
		w, err := newWorker(fmt.Sprintf("worker %d", i+1), cmp.Or(os.Getenv("KEY"), "demo"), bucket, opts)
		if err != nil {
			return err
		}
		all = append(all, w)
	}
	var running sync.WaitGroup
	for _, w := range all {
		running.Go(func() { w.run(ctx) })
	}
	running.Wait()
	return nil
}

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
