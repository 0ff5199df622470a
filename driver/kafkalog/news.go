package kafkalog

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/watches"
)

// news are the calls to make once the lock is released.
type news struct {
	to    []*watches.Watch
	entry driver.Entry
}

func tell(all []news) {
	for _, n := range all {
		watches.Push(n.to, n.entry)
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
	w := watches.New(key, see)
	lost, err := s.add(w)
	if err != nil {
		return nil, fmt.Errorf("kafkalog: watch %s in topic %s: %w", key, s.wire.topic, err)
	}
	if lost != nil {
		see(driver.Entry{Lost: lost})
		if s.hears() { // since a moment ago
			see(driver.Entry{Unverified: true})
		}
	}
	return func() {
		if w.Stop() {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.watches.Remove(w)
		}
	}, nil
}

// add returns why nothing is pushed at present, if that is so.
func (s *Store) add(w *watches.Watch) (lost, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if errors.Is(s.trouble, errClosed) {
		return nil, errClosed
	}
	s.watches.Put(w)
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
	for _, key := range s.watches.Keys() {
		all = append(all, news{s.watches.Of(key), s.entry(st, key)})
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
		if to := s.watches.Of(p.key); effective && to != nil {
			all = append(all, news{to, driver.Entry{Value: p.value, Version: p.version(), Floor: s.raise(st, p.offset+1)}})
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
	return []news{{s.watches.All(), e}}
}

// changing is called under the lock.
func (s *Store) changing() {
	close(s.changed)
	s.changed = make(chan struct{})
}
