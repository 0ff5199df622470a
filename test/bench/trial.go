package main

import (
	"errors"
	"io"
	"slices"
	"sync"

	"github.com/tenure-go/tenure/driver"
)

// trial is one run of an experiment. As in a test, the first error ends it, and everything that it
// started ends with it.
type trial struct {
	*bench
	site  *site
	found []measure
	ends  []func()
}

// failure is the panic by which check ends a trial.
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

// errBusy means that a busy machine spoiled a measure: a leader was held up for longer than its
// lease, or lost its connection. No promise is broken.
var errBusy = errors.New("the machine is too busy to measure it")

// catch is deferred, and returns the error that ended a trial.
func catch(err *error) {
	switch r := recover().(type) {
	case nil:
	case failure:
		*err = r.error
	default:
		panic(r)
	}
}

// try runs a trial, and returns its measures, also those before an error.
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
func (t *trial) shared() servers { return t.serversOf(t.site) }

// open opens a bucket in this process.
func (t *trial) open(on servers, bucket string) driver.Store {
	s := on.open(t.ctx, bucket)
	if c, ok := s.(io.Closer); ok {
		t.cleanup(func() { _ = c.Close() })
	}
	return s
}

// sideBySide runs n trials at once.
func sideBySide[T any](t *trial, n int, do func(t *trial, i int) T) []T {
	found, errs := make([]T, n), make([]error, n)
	var trials sync.WaitGroup
	for i := range n {
		trials.Go(func() {
			_, errs[i] = t.try(t.site, func(t *trial) { found[i] = do(t, i) })
		})
	}
	trials.Wait()
	for _, err := range errs {
		check(err)
	}
	return found
}

// inTurn runs n trials one after another. In a quick run, where precision matters less than time,
// they run side by side.
func inTurn[T any](t *trial, n int, do func(t *trial, i int) T) []T {
	if t.quick {
		return sideBySide(t, n, do)
	}
	var found []T
	for i := range n {
		found = append(found, sideBySide(t, 1, func(t *trial, _ int) T { return do(t, i) })...)
	}
	return found
}
