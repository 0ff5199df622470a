package kafkalog

import (
	"context"
	"fmt"
	"slices"

	"github.com/tenure-go/tenure/driver"
)

var _ driver.Lister = (*Store)(nil)

// Keys returns the sorted keys of all cells that hold a value at the time of the call, or later. It
// needs the same rights as Read. Errors are as for Read.
func (s *Store) Keys(ctx context.Context) ([]string, error) {
	all, err := s.keys(ctx)
	if err != nil {
		return nil, fmt.Errorf("kafkalog: list the keys in topic %s: %w", s.wire.topic, err)
	}
	slices.Sort(all)
	return all, nil
}

func (s *Store) keys(ctx context.Context) (all []string, err error) {
	st, err := s.current(ctx)
	if err != nil {
		return nil, err
	}
	if err := s.catchUp(ctx, st); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.now != st {
		return nil, st.why
	}
	for key, t := range st.fold.trails {
		if t.state != nil && len(t.state.value) > 0 && checkKey(key) == nil {
			all = append(all, key)
		}
	}
	return all, nil
}
