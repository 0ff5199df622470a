package memory

import (
	"context"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/watches"
)

// feed carries the changes of one key to its watches. All fields are guarded by the store's lock.
// It has no goroutine of its own: each writer also pushes, unless another goroutine already pushes
// on this feed, which then pushes the new entry, too. That keeps the entries of a key in the order
// of its writes.
type feed struct {
	key     string
	queued  []driver.Entry
	pushing bool
}

// Watch calls see for every later change of the cell, in order, until stop is called. It does not
// call it for the present state. A writing method calls see before it returns, unless another
// writing method is just then pushing changes of the key. That method then makes the call, perhaps
// after the first one has returned. See may keep the value that it is given. The errors are as for
// Read.
func (s *Store) Watch(ctx context.Context, key string, see func(driver.Entry)) (stop func(), err error) {
	if err := s.admit(ctx, key); err != nil {
		return nil, err
	}
	w := watches.New(key, see)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.watches.Put(w)
	if s.feeds[key] == nil {
		s.feeds[key] = &feed{key: key}
	}
	return func() {
		if !w.Stop() {
			return
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.watches.Remove(w) {
			s.feeds[key].queued = nil // a push under way ends, and leaves later watches alone
			delete(s.feeds, key)
		}
	}, nil
}

// queue adds the entry of a write and returns the feed to push, nil if there is no watch. It is
// called under the lock.
func (p *Polled) queue(key string, c cell) *feed {
	f := p.feeds[key]
	if f != nil {
		f.queued = append(f.queued, driver.Entry{Value: c.value, Version: c.version(), Floor: p.seq, Era: p.era})
	}
	return f
}

// push delivers the queued entries. It is called without the lock, so that see may use the store.
func (p *Polled) push(f *feed) {
	if !p.mustPush(f) {
		return
	}
	for {
		e, to, more := p.next(f)
		if !more {
			return
		}
		watches.Push(to, e)
	}
}

// mustPush reports whether the caller must push on this feed.
func (p *Polled) mustPush(f *feed) bool {
	if f == nil {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	idle := !f.pushing
	f.pushing = true
	return idle
}

// next removes and returns the oldest entry. If there is none, it clears pushing under the same
// lock, so a writer that queues an entry later pushes itself.
func (p *Polled) next(f *feed) (e driver.Entry, to []*watches.Watch, more bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(f.queued) == 0 {
		f.pushing = false
		return driver.Entry{}, nil, false
	}
	e, f.queued = f.queued[0], f.queued[1:]
	return e, p.watches.Of(f.key), true
}
