package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/tenure-go/tenure/driver/natskv"
	"github.com/tenure-go/tenure/test/internal/natsd"
	"github.com/tenure-go/tenure/test/internal/s3d/s3d"
)

// bench is what all rows share: one server process of each kind and a connection to NATS.
type bench struct {
	ctx    context.Context
	quick  bool
	wants  bool // real brokers, in a quick run
	runs   int  // 0: as many as each row has
	log    io.Writer
	dir    string
	server *natsd.Server
	nc     *nats.Conn
	js     jetstream.JetStream

	mu      sync.Mutex
	buckets int
	objects *s3d.Server // nil until a row wants it

	kafka kafkas

	direct, partible *replicas // nil until a row wants them
}

func open(ctx context.Context, o options, log io.Writer) (*bench, error) {
	b := &bench{ctx: ctx, quick: o.quick, wants: o.brokers, runs: o.runs, log: log}
	if err := b.start(); err != nil {
		b.close()
		return nil, err
	}
	return b, nil
}

func (b *bench) start() (err error) {
	if b.dir, err = os.MkdirTemp("", "tenure-bench-"); err != nil {
		return err
	}
	if b.server, err = natsd.Start(b.dir); err != nil {
		return err
	}
	if b.nc, err = nats.Connect(b.server.URL(), nats.Name("bench")); err != nil {
		return err
	}
	b.js, err = jetstream.New(b.nc)
	return err
}

func (b *bench) close() {
	if b.nc != nil {
		b.nc.Close()
	}
	if b.server != nil {
		b.server.Kill()
	}
	if b.objects != nil {
		b.objects.Stop()
	}
	b.kafka.end()
	b.endReplicas()
	_ = os.RemoveAll(b.dir)
}

// bucket makes a fresh one.
func (b *bench) bucket() (string, error) {
	b.mu.Lock()
	b.buckets++
	name := fmt.Sprintf("ELECTIONS_%d", b.buckets)
	b.mu.Unlock()
	_, err := natskv.Open(b.ctx, b.js, name, natskv.Create())
	return name, err
}

// pick is the number of repetitions.
func (b *bench) pick(quick, full int) int {
	if b.quick {
		return quick
	}
	return full
}

// repeat is pick for the rows whose number of runs the user may choose.
func (b *bench) repeat(quick, full int) int {
	if b.runs > 0 {
		return b.runs
	}
	return b.pick(quick, full)
}

// sleep ends early with the bench.
func (b *bench) sleep(d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-b.ctx.Done():
	}
}

// several runs n plays one after another, and in a quick run side by side: there time is short, and figures matter less.
func several[T any](b *bench, n int, play func(i int) ([]T, error)) ([]T, error) {
	if b.quick {
		return parallel(n, play)
	}
	var all []T
	for i := range n {
		found, err := play(i)
		if err != nil {
			return all, err
		}
		all = append(all, found...)
	}
	return all, nil
}

// parallel runs n plays side by side and gathers what they found.
func parallel[T any](n int, play func(i int) ([]T, error)) ([]T, error) {
	found, errs := make([][]T, n), make([]error, n)
	var plays sync.WaitGroup
	for i := range n {
		plays.Go(func() { found[i], errs[i] = play(i) })
	}
	plays.Wait()
	var all []T
	for i := range n {
		if errs[i] != nil {
			return nil, errs[i]
		}
		all = append(all, found[i]...)
	}
	return all, nil
}
