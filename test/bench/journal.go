package main

import (
	"context"
	"fmt"
	"slices"
	"sync"
)

// entry is a report and who made it.
type entry struct {
	who string
	report
}

// journal keeps the reports of several workers in the order in which they came, which for two workers need not be the
// order of their stamps.
type journal struct {
	mu   sync.Mutex
	all  []entry
	grew chan struct{} // closed when an entry is added
}

func newJournal() *journal { return &journal{grew: make(chan struct{})} }

func (j *journal) add(e entry) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.all = append(j.all, e)
	close(j.grew)
	j.grew = make(chan struct{})
}

// mark is the present end of the journal.
func (j *journal) mark() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return len(j.all)
}

// since returns the entries after a mark.
func (j *journal) since(mark int) ([]entry, <-chan struct{}) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clip(j.all[mark:]), j.grew
}

// await returns the first entry after the mark that matches. What must happen may take as long as the bench may.
func (j *journal) await(ctx context.Context, mark int, name string, match func(entry) bool) (entry, error) {
	for {
		news, grew := j.since(mark)
		for _, e := range news {
			if match(e) {
				return e, nil
			}
			if e.What == failed {
				return entry{}, fmt.Errorf("%s: %s", e.who, e.Error)
			}
		}
		mark += len(news)
		select {
		case <-grew:
		case <-ctx.Done():
			return entry{}, fmt.Errorf("waiting for %s: %w", name, ctx.Err())
		}
	}
}

// last returns the latest entry of those after the mark that matches.
func last(entries []entry, match func(entry) bool) (entry, bool) {
	for _, e := range slices.Backward(entries) {
		if match(e) {
			return e, true
		}
	}
	return entry{}, false
}
