package main

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// battery holds the parts that all runs share.
type battery struct {
	ctx context.Context
	options
	log    io.Writer
	dir    string // everything that is written
	bin    string // where the binaries are
	tenure string
	worker string

	mu     sync.Mutex // guards the fields below, and keeps lines that are logged together
	rand   *rand.Rand
	broken map[*flaw]*broken
}

// open builds the programs.
func open(ctx context.Context, o options, log io.Writer) (*battery, error) {
	b := &battery{ctx: ctx, options: o, log: log, rand: rand.New(rand.NewPCG(o.seed, 0)), broken: map[*flaw]*broken{}}
	fmt.Fprintf(log, "seed %d, lease %v\n", o.seed, o.lease)
	if err := b.build(); err != nil {
		b.close()
		return nil, err
	}
	return b, nil
}

func (b *battery) build() (err error) {
	if b.dir, err = os.MkdirTemp(b.keep, "tenure-battery-"); err != nil {
		return err
	}
	b.bin = filepath.Join(b.dir, "bin")
	if err := os.MkdirAll(b.bin, 0o700); err != nil {
		return err
	}
	// The kernel shows the paths of running programs whole and without links in them.
	if b.bin, err = filepath.EvalSymlinks(b.bin); err != nil {
		return err
	}
	if b.bin, err = filepath.Abs(b.bin); err != nil {
		return err
	}
	if b.tenure, err = build(b.ctx, b.bin, "tenure", tenurePackage); err != nil {
		return err
	}
	b.worker, err = build(b.ctx, b.bin, "worker", workerPackage)
	return err
}

func (b *battery) close() {
	if b.keep == "" {
		_ = os.RemoveAll(b.dir)
	}
}

// generator is a source of random numbers for one run.
func (b *battery) generator() *rand.Rand {
	b.mu.Lock()
	defer b.mu.Unlock()
	return rand.New(rand.NewPCG(b.seed, b.rand.Uint64()))
}

// pick is a number of repetitions, or a time.
func pick[T int | time.Duration](b *battery, quick, full T) T {
	if b.quick {
		return quick
	}
	return full
}

// players is how many runs are played side by side.
func (b *battery) players() int {
	if b.side > 0 {
		return b.side
	}
	return pick(b, 8, 4)
}

// bound is how long after a fault the next worker may begin.
// Databases are polled, and up to a lease may pass between two reads.
func (b *battery) bound() time.Duration {
	bound := b.lease*3/2 + time.Second/2
	if b.store != "nats" {
		bound += b.lease
	}
	return bound
}

// environment is this process's own without the variables that set tenure's flags, and with the
// mark of a stage.
func environment(mark string, more ...string) []string {
	own := slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "TENURE_") })
	return append(append(own, markVariable+"="+mark), more...)
}
