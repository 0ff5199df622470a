package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/tenure-go/tenure/internal/witness"
)

// watch follows the journal of a stage while it is written.
type watch struct {
	reader *witness.Reader
	begins func(reign) // called for each new reign, before the reign is visible to others
	stop   chan struct{}
	done   sync.WaitGroup

	mu      sync.Mutex
	records []witness.Record
	reigns  []reign
	failed  error
	changed chan struct{} // closed at the next change
}

// reign is one run of a worker. From its first act on, no process with a lower token may act.
type reign struct {
	token     uint64
	candidate int
	root      int   // the process that tenure started
	began     int64 // its first act
	number    int   // from 1, in the order of the journal
}

// glance is the time between two reads of the journal.
const glance = 2 * time.Millisecond

// follow starts to follow a journal. Call end to stop.
func follow(path string, begins func(reign)) (*watch, error) {
	r, err := witness.Follow(path)
	if err != nil {
		return nil, err
	}
	w := &watch{reader: r, begins: begins, stop: make(chan struct{}), changed: make(chan struct{})}
	w.done.Go(w.run)
	return w, nil
}

func (w *watch) run() {
	tick := time.NewTicker(glance)
	defer tick.Stop()
	for {
		w.read()
		select {
		case <-tick.C:
		case <-w.stop:
			w.read()
			return
		}
	}
}

func (w *watch) read() {
	news, err := w.reader.Next()
	if len(news) == 0 && err == nil {
		return
	}
	begun := reignsIn(news, w.mark())
	for _, r := range begun {
		w.begins(r)
	}
	w.add(news, begun, err)
}

func (w *watch) add(news []witness.Record, begun []reign, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.records, w.reigns = append(w.records, news...), append(w.reigns, begun...)
	if w.failed == nil {
		w.failed = err
	}
	close(w.changed)
	w.changed = make(chan struct{})
}

// reignsIn returns the reigns that begin in the records. Before is the number of earlier reigns.
func reignsIn(records []witness.Record, before int) []reign {
	var all []reign
	for _, r := range records {
		if r.What == witness.Began {
			number := before + len(all) + 1
			all = append(all, reign{token: r.Token, candidate: int(r.Candidate), root: int(r.Root), began: r.At, number: number})
		}
	}
	return all
}

// end stops following and returns the whole journal.
func (w *watch) end() ([]witness.Record, error) {
	close(w.stop)
	w.done.Wait()
	return w.records, errors.Join(w.failed, w.reader.Close())
}

// mark returns the number of reigns so far.
func (w *watch) mark() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.reigns)
}

// last returns the latest reign.
func (w *watch) last() (reign, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.reigns) == 0 {
		return reign{}, false
	}
	return w.reigns[len(w.reigns)-1], true
}

// await waits for the reign after another one. The first reign follows the zero reign.
func (w *watch) await(ctx context.Context, old reign) (r reign, err error) {
	err = w.until(ctx, "a new worker", func() bool {
		if len(w.reigns) <= old.number {
			return false
		}
		r = w.reigns[old.number]
		return true
	})
	return r, err
}

// awaitAsked returns the time when the worker of a reign was asked to stop. It returns 0 if another
// reign began first: on a busy machine the worker may be killed before it records the request.
func (w *watch) awaitAsked(ctx context.Context, r reign) (at int64, err error) {
	seen := 0
	err = w.until(ctx, "the worker to be asked to stop", func() bool {
		for ; seen < len(w.records); seen++ {
			if rec := w.records[seen]; rec.What == witness.Asked && int(rec.PID) == r.root {
				at = rec.At
				return true
			}
		}
		return len(w.reigns) > r.number
	})
	return at, err
}

// until waits until there returns true. It calls there under the lock after each change.
func (w *watch) until(ctx context.Context, what string, there func() bool) error {
	for {
		w.mu.Lock()
		ok, failed, changed := there(), w.failed, w.changed
		w.mu.Unlock()
		switch {
		case ok:
			return nil
		case failed != nil:
			return failed
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("waited in vain for %s: %w", what, ctx.Err())
		}
	}
}

// lastActOf returns the time of the last act of a reign so far, by the worker or its children.
func (w *watch) lastActOf(r reign) int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, rec := range slices.Backward(w.records) {
		if int(rec.Root) == r.root && rec.Token == r.token && rec.What == witness.Act {
			return rec.At
		}
	}
	return 0
}

// awaitAct returns the time of the first act of any worker after a moment.
func (w *watch) awaitAct(ctx context.Context, after int64) (at int64, err error) {
	err = w.until(ctx, "an act", func() bool {
		for _, r := range slices.Backward(w.records) {
			if r.At <= after {
				break
			}
			if r.What == witness.Act {
				at = r.At
			}
		}
		return at > 0
	})
	return at, err
}
