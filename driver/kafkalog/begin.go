package kafkalog

import (
	"context"
)

// peek is how many records at the end are searched for one of ours.
const peek = 64

// begin reads the log as far as it must be known, which is as far as it ended when this began.
func (s *Store) begin(ctx context.Context, at place) (*stretch, error) {
	start, end, err := s.bounds(ctx, at)
	if err != nil {
		return nil, err
	}
	from, err := s.entrance(ctx, at, start, end)
	if err != nil {
		return nil, err
	}
	st := &stretch{at: at, fold: newFold(from, start, window), epoch: -1, drafts: map[uint64]*draft{}, lost: make(chan struct{})}
	for st.fold.next < end {
		h, err := s.wire.fetch(ctx, at, st.fold.next, st.epoch, shortPoll)
		if err != nil {
			return nil, err
		}
		st.fill(h, nil)
	}
	return st, nil
}

func (s *Store) bounds(ctx context.Context, at place) (start, end int64, err error) {
	ctx, cancel := context.WithTimeout(ctx, s.wire.timeout)
	defer cancel()
	if start, err = s.wire.bound(ctx, at, atStart); err != nil {
		return 0, 0, err
	}
	end, err = s.wire.bound(ctx, at, atEnd)
	return start, end, err
}

// entrance returns where to begin: far enough before the oldest post that was in force when the
// last one was written. If there is no post of ours at the end, the whole log is read.
func (s *Store) entrance(ctx context.Context, at place, start, end int64) (int64, error) {
	from := start
	for next := max(start, end-peek); next < end; {
		h, err := s.wire.fetch(ctx, at, next, -1, shortPoll)
		if err != nil {
			return 0, err
		}
		for _, p := range h.posts(at.tag()) {
			from = entranceBy(p, start, window)
		}
		next = h.next
	}
	return from, nil
}

// entranceBy returns where to begin according to one post. The writer of any post that lands at its
// base or later had read at least up to a window before the base. A reader that judges such a post
// must have seen the window before that point.
func entranceBy(p post, start, window int64) int64 { return max(start, p.base-2*window) }

// fill takes the fetched records, and reports each post and whether it is in force.
func (st *stretch) fill(h haul, told func(post, bool)) {
	for _, r := range h.records {
		if r.Offset < st.fold.next {
			continue
		}
		p, ours := postOf(r, st.at.tag())
		if st.seen.count(r, ours); !ours {
			st.seen.later = st.seen.later || headed(r) && isLater(r.Headers[0].Value, st.at.tag())
			continue
		}
		effective := st.fold.apply(p)
		if told != nil {
			told(p, effective)
		}
	}
	st.fold.skip(h.next)
	st.fold.trim(h.start)
	st.epoch = max(st.epoch, h.epoch)
}
