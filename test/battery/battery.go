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
	dir    string // for all files
	bin    string // the directory of the binaries
	tenure string
	worker string

	mu     sync.Mutex // guards the fields below, and keeps the log lines of one run together
	rand   *rand.Rand
	broken map[*flaw]*broken
}

// open creates the directories of a battery and builds the programs.
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
	// The kernel shows the paths of running programs without symbolic links.
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

// generator returns a source of random numbers for one run.
func (b *battery) generator() *rand.Rand {
	b.mu.Lock()
	defer b.mu.Unlock()
	return rand.New(rand.NewPCG(b.seed, b.rand.Uint64()))
}

// pick returns a number of repetitions, or a time: one for a quick run, or one for a full run.
func pick[T int | time.Duration](b *battery, quick, full T) T {
	if b.quick {
		return quick
	}
	return full
}

// players returns how many runs are played at the same time.
func (b *battery) players() int {
	if b.side > 0 {
		return b.side
	}
	return pick(b, 8, 4)
}

// bound returns the longest time from a fault to the next worker. It is longer for databases: they
// are polled, and up to a lease may pass between two reads.
func (b *battery) bound() time.Duration {
	bound := b.lease*3/2 + time.Second/2
	if b.store != "nats" {
		bound += b.lease
	}
	return bound
}

// environment returns the environment of this process without the variables that set tenure's
// flags, and with the mark of a stage.
func environment(mark string, more ...string) []string {
	own := slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "TENURE_") })
	return append(append(own, markVariable+"="+mark), more...)
}
