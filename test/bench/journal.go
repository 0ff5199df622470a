package main

import (
	"context"
	"fmt"
	"slices"
	"sync"
)

// entry is a report of a member.
type entry struct {
	who string
	report
}

// journal keeps the reports of several members in the order of their arrival. Their stamps may have
// another order.
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

// mark returns the number of entries so far.
func (j *journal) mark() int { return len(j.since(0)) }

// since returns the entries after a mark.
func (j *journal) since(mark int) []entry {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clip(j.all[mark:])
}

// await waits for the first entry after the mark that matches. Only the time limit of the bench
// bounds the wait.
func (j *journal) await(ctx context.Context, mark int, what string,
	match func(entry) bool) (entry, error) {
	for {
		j.mu.Lock()
		news, grew := slices.Clip(j.all[mark:]), j.grew
		j.mu.Unlock()
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
			return entry{}, fmt.Errorf("waiting for %s: %w", what, ctx.Err())
		}
	}
}

// last returns the latest entry that matches.
func last(entries []entry, match func(entry) bool) (entry, bool) {
	for _, e := range slices.Backward(entries) {
		if match(e) {
			return e, true
		}
	}
	return entry{}, false
}
