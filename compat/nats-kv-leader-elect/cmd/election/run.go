package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"sync"
	"syscall"

	"github.com/nats-io/nats.go"
	"github.com/synadia-io/orbit.go/natscontext"
	"github.com/tenure-go/tenure/compat/nats-kv-leader-elect"
)

// bucketName is the same as in nats-kv-leader-elect's demonstration.
const bucketName = "DEMO_ELECTION"

// settings are the values in the environment.
type settings struct {
	context string
	key     string
	workers int
	opts    []election.Option
}

func read(env func(string) string) (settings, error) {
	s := settings{context: env("CONTEXT"), key: "demo", workers: 10}
	if key := env("KEY"); key != "" {
		s.key = key
	}
	if n := env("WORKERS"); n != "" {
		var err error
		if s.workers, err = strconv.Atoi(n); err != nil || s.workers < 1 {
			return s, fmt.Errorf("WORKERS is %q; it must be a number from 1 on", n)
		}
	}
	if env("NOSPLAY") == "1" {
		s.opts = append(s.opts, election.WithoutSplay())
	}
	if env("MIGRATING") == "1" {
		s.opts = append(s.opts, election.Migrating())
	}
	return s, nil
}

// run takes part until a signal comes, which is not an error.
func run(env func(string) string) error {
	s, err := read(env)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	nc, known, err := natscontext.Connect(s.context, nats.Name("election"), nats.MaxReconnects(-1))
	if err != nil {
		return fmt.Errorf("cannot connect with the context of the nats command (CONTEXT=%s): %w", s.context, err)
	}
	defer nc.Close()
	bucket, err := open(nc, known)
	if err != nil {
		return err
	}
	return s.elect(ctx, bucket)
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
func (s settings) elect(ctx context.Context, bucket nats.KeyValue) error {
	var all []*worker
	for i := range s.workers {
		w, err := newWorker(fmt.Sprintf("worker %d", i+1), s.key, bucket, s.opts)
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
