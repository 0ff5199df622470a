package crew

import (
	"context"
	"fmt"
	"slices"
	"sync"
)

// Journal keeps what several processes report, in the order of arrival, and lets others wait for
// it. Stamps in the entries may have another order. The zero Journal is empty. Several goroutines
// may use it.
type Journal[E any] struct {
	mu     sync.Mutex
	all    []E
	failed error
	grew   chan struct{} // closed at the next change; nil if no goroutine waits
}

// Add adds entries.
func (j *Journal[E]) Add(entries ...E) {
	j.change(func() { j.all = append(j.all, entries...) })
}

// Fail ends all waits for entries that the journal does not have. The first error counts.
func (j *Journal[E]) Fail(err error) {
	j.change(func() {
		if j.failed == nil {
			j.failed = err
		}
	})
}

func (j *Journal[E]) change(how func()) {
	j.mu.Lock()
	defer j.mu.Unlock()
	how()
	if j.grew != nil {
		close(j.grew)
		j.grew = nil
	}
}

// Failed returns the error of Fail.
func (j *Journal[E]) Failed() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.failed
}

// Mark returns the number of entries so far.
func (j *Journal[E]) Mark() int { return len(j.Since(0)) }

// Since returns the entries after a mark. Do not change them.
func (j *Journal[E]) Since(mark int) []E {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clip(j.all[mark:])
}

// Last returns the latest entry; false if there is none.
func (j *Journal[E]) Last() (E, bool) {
	return Last(j.Since(0), func(E) bool { return true })
}

// Await waits for the first entry after the mark that matches. It calls match for each entry, in
// their order, until match returns true.
func (j *Journal[E]) Await(ctx context.Context, mark int, what string, match func(E) bool) (E, error) {
	for {
		j.mu.Lock()
		news, failed := slices.Clip(j.all[mark:]), j.failed
		if j.grew == nil {
			j.grew = make(chan struct{})
		}
		grew := j.grew
		j.mu.Unlock()
		if i := slices.IndexFunc(news, match); i >= 0 {
			return news[i], nil
		}
		mark += len(news)
		var none E
		if failed != nil {
			return none, failed
		}
		select {
		case <-grew:
		case <-ctx.Done():
			return none, fmt.Errorf("waited in vain for %s: %w", what, context.Cause(ctx))
		}
	}
}

// Last returns the latest entry that matches.
func Last[E any](entries []E, match func(E) bool) (found E, ok bool) {
	for _, e := range slices.Backward(entries) {
		if match(e) {
			return e, true
		}
	}
	return found, false
}
