package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// bench holds the servers that rows share. They are started at the first need.
type bench struct {
	options
	ctx context.Context
	log io.Writer
	dir string

	mu      sync.Mutex
	started map[*site]servers
	names   int
}

func newBench(ctx context.Context, o options, log io.Writer) (*bench, error) {
	dir, err := os.MkdirTemp("", "tenure-bench-")
	return &bench{options: o, ctx: ctx, log: log, dir: dir, started: map[*site]servers{}}, err
}

func (b *bench) close() {
	for _, s := range b.started {
		s.stop()
	}
	_ = os.RemoveAll(b.dir)
}

func (b *bench) serversOf(s *site) servers {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.started[s] == nil {
		dir := filepath.Join(b.dir, fmt.Sprint("servers-", len(b.started)))
		check(os.Mkdir(dir, 0o700))
		b.started[s] = s.start(b, dir)
	}
	return b.started[s]
}

// unique returns a name that nothing else has, for a bucket, a member or an election.
func (b *bench) unique(name string) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.names++
	return fmt.Sprintf("%s-%d", name, b.names)
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

// repeat returns the number of runs: -runs, or else that of the row.
func (b *bench) repeat(n choice[int]) int {
	if b.runs > 0 {
		return b.runs
	}
	return pick(b, n)
}

// choice is a setting of a row, in a quick run and in a full one.
type choice[T any] struct{ quick, full T }

func always[T any](v T) choice[T] { return choice[T]{v, v} }

func pick[T any](b *bench, c choice[T]) T {
	if b.quick {
		return c.quick
	}
	return c.full
}

func (c choice[T]) String() string {
	full, quick := fmt.Sprint(c.full), fmt.Sprint(c.quick)
	if full == quick {
		return full
	}
	return full + " (" + quick + " in a quick run)"
}
