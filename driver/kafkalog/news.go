package kafkalog

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/tenure-go/tenure/driver"
)

// watch is one caller of Watch.
type watch struct {
	see     func(driver.Entry)
	stopped atomic.Bool
}

// news are the calls to make once the lock is released.
type news struct {
	watches []*watch
	entry   driver.Entry
}

func tell(all []news) {
	for _, n := range all {
		for _, w := range n.watches {
			if !w.stopped.Load() {
				own := n.entry
				own.Value = bytes.Clone(n.entry.Value)
				w.see(own)
			}
		}
	}
}

// Watch calls see for every later change of the cell, in order, until stop is called. It also calls
// see for the present state each time the store had to read the log again. It costs no request and
// no goroutine: the store reads the log anyway.
//
// The context is not used: there is nothing to set up. Watch returns the error of CheckKey, and an
// error after Close.
func (s *Store) Watch(_ context.Context, key string, see func(driver.Entry)) (stop func(), err error) {
	if err := checkKey(key); err != nil {
		return nil, fmt.Errorf("kafkalog: watch: %w", err)
	}
	w := &watch{see: see}
	lost, err := s.add(key, w)
	if err != nil {
		return nil, fmt.Errorf("kafkalog: watch %s in topic %s: %w", key, s.wire.topic, err)
	}
	if lost != nil {
		see(driver.Entry{Lost: lost})
		if s.hears() { // since a moment ago
			see(driver.Entry{Unverified: true})
		}
	}
	return func() { s.unwatch(key, w) }, nil
}

// add returns why nothing is pushed at present, if that is so.
func (s *Store) add(key string, w *watch) (lost, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if errors.Is(s.trouble, errClosed) {
		return nil, errClosed
	}
	s.watches[key] = append(slices.Clone(s.watches[key]), w)
	if s.told {
		lost = s.trouble
	}
	return lost, nil
}

// hears reports whether changes are pushed.
func (s *Store) hears() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.told
}

// unwatch replaces the slice of the key, since tell may be iterating over the old one.
func (s *Store) unwatch(key string, w *watch) {
	if w.stopped.Swap(true) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	rest := slices.DeleteFunc(slices.Clone(s.watches[key]), func(other *watch) bool { return other == w })
	if len(rest) == 0 {
		delete(s.watches, key)
		return
	}
	s.watches[key] = rest
}

// adopt makes a stretch the one that calls use, and notifies the watches of its first state.
func (s *Store) adopt(st *stretch) {
	s.mu.Lock()
	if s.ctx.Err() != nil {
		s.mu.Unlock()
		return
	}
	s.now, s.latest = st, st.at
	s.troubled(nil) // the watches get the present state below
	s.changing()
	var all []news
	for key, watches := range s.watches {
		all = append(all, news{watches, s.entry(st, key)})
	}
	s.mu.Unlock()
	tell(all)
}

// take is called with the fetched records.
func (s *Store) take(st *stretch, h haul) {
	s.mu.Lock()
	var all []news
	st.fill(h, func(p post, effective bool) {
		st.settle(p, effective)
		if watches := s.watches[p.key]; effective && watches != nil {
			all = append(all, news{watches, driver.Entry{Value: p.value, Version: p.version(), Floor: s.raise(st, p.offset+1)}})
		}
	})
	st.wake()
	s.mu.Unlock()
	tell(all)
}

// wake ends the waits for offsets that the log has now reached.
func (st *stretch) wake() {
	st.waits = slices.DeleteFunc(st.waits, func(w wait) bool {
		if w.until > st.fold.next {
			return false
		}
		close(w.done)
		return true
	})
}

// lose ends the present stretch, if there is one, with all calls that wait for it.
func (s *Store) lose(why error) {
	s.mu.Lock()
	all := s.troubled(why)
	if st := s.now; st != nil {
		st.why = fmt.Errorf("the log must be read again: %w", why)
		s.now = nil
		close(st.lost)
	}
	s.changing()
	s.mu.Unlock()
	tell(all)
}

// note records the obstacle to reading, for callers that give up waiting for it; nil if there is
// none any more.
func (s *Store) note(trouble error) {
	s.mu.Lock()
	all := s.troubled(trouble)
	s.mu.Unlock()
	tell(all)
}

// tolerated is how long the log may not be read before the elections poll. Another broker usually
// leads sooner.
const tolerated = 2 * time.Second

// troubled records the obstacle to reading, and returns the calls that tell all watches when it has
// lasted, and when it is over. It is called under the lock, at each attempt.
func (s *Store) troubled(why error) (all []news) {
	var e driver.Entry
	s.trouble = why
	switch {
	case why == nil:
		told := s.told
		s.since, s.told = time.Time{}, false
		if !told {
			return nil
		}
		e.Unverified = true // makes them read
	case s.since.IsZero():
		s.since = time.Now()
		return nil
	case time.Since(s.since) < tolerated:
		return nil
	default:
		s.since, s.told = time.Now(), true
		e.Lost = fmt.Errorf("kafkalog: topic %s cannot be read: %w", s.wire.topic, why)
	}
	for _, watches := range s.watches {
		all = append(all, news{watches, e})
	}
	return all
}

// changing is called under the lock.
func (s *Store) changing() {
	close(s.changed)
	s.changed = make(chan struct{})
}
