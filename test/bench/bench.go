package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/tenure-go/tenure/driver"
)

// bench holds the servers that rows share. They start when a row first needs them.
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

// unique returns a unique name for a bucket, a member or an election.
func (b *bench) unique(name string) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.names++
	return fmt.Sprintf("%s-%d", name, b.names)
}

// sleep sleeps, and returns early if the bench ends.
func (b *bench) sleep(d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-b.ctx.Done():
	}
}

// repeat returns the number of rounds: -runs divided by times, or else the row's number.
func (b *bench) repeat(rounds choice[int], times int) int {
	if b.runs > 0 {
		return (b.runs + times - 1) / times
	}
	return pick(b, rounds)
}

// choice is a setting of a row, for a quick run and for a full run.
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

// trial is one run of an experiment. As in a test, the first error ends it, and its end stops
// everything that it started.
type trial struct {
	*bench
	site  *site
	found []measure
	ends  []func()
}

// failure is the panic with which check ends a trial.
type failure struct{ error }

// check ends the trial if there is an error.
func check(err error) {
	if err != nil {
		panic(failure{err})
	}
}

// must returns the value, or ends the trial if there is an error.
func must[T any](v T, err error) T {
	check(err)
	return v
}

// errBusy means that the machine was too busy to measure: a leader was delayed for longer than its
// lease, or lost its connection. No promise is broken.
var errBusy = errors.New("the machine is too busy to measure it")

// catch stores the error that ended a trial. Defer it.
func catch(err *error) {
	switch r := recover().(type) {
	case nil:
	case failure:
		*err = r.error
	default:
		panic(r)
	}
}

// try runs a trial and returns its measures, also those from before an error.
func (b *bench) try(s *site, do func(*trial)) ([]measure, error) {
	t := &trial{bench: b, site: s}
	err := t.do(do)
	return t.found, err
}

func (t *trial) do(do func(*trial)) (err error) {
	defer catch(&err)
	defer func() {
		for _, end := range slices.Backward(t.ends) {
			end()
		}
	}()
	do(t)
	return nil
}

// cleanup calls a function when the trial ends.
func (t *trial) cleanup(end func()) { t.ends = append(t.ends, end) }

func (t *trial) report(found ...measure) { t.found = append(t.found, found...) }

// shared returns the servers that all trials at the site share.
func (t *trial) shared() servers {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.started[t.site] == nil {
		dir := filepath.Join(t.dir, fmt.Sprint("servers-", len(t.started)))
		check(os.Mkdir(dir, 0o700))
		t.started[t.site] = t.site.start(t.bench, dir)
	}
	return t.started[t.site]
}

// open opens a bucket in this process, as candidates do in their processes.
func (t *trial) open(on servers, bucket string) driver.Store {
	me := identity{ID: "bench", Addresses: on.addresses()}
	c := must(t.site.connect(newObserver(me, func(report) {})))
	s := must(c.open(command{Bucket: bucket, Quiet: true}))
	if c, ok := s.(io.Closer); ok {
		t.cleanup(func() { _ = c.Close() })
	}
	return s
}

// sideBySide runs n trials at the same time, and reports their measures in order.
func sideBySide[T any](t *trial, n int, do func(t *trial, i int) T) []T {
	results, found, errs := make([]T, n), make([][]measure, n), make([]error, n)
	var trials sync.WaitGroup
	for i := range n {
		trials.Go(func() {
			found[i], errs[i] = t.try(t.site, func(t *trial) { results[i] = do(t, i) })
		})
	}
	trials.Wait()
	t.report(slices.Concat(found...)...)
	for _, err := range errs {
		check(err)
	}
	return results
}

// inTurn runs n trials one after another. A quick run needs less precision and runs them at the
// same time.
func inTurn(t *trial, n int, do func(t *trial, i int)) {
	atOnce := pick(t.bench, choice[int]{n, 1})
	for i := 0; i < n; i += atOnce {
		sideBySide(t, atOnce, func(t *trial, k int) error { do(t, i+k); return nil })
	}
}
