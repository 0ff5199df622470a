package kafkalog

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"fmt"

	"github.com/tenure-go/tenure/driver"
)

// draft is a post that its caller waits for.
type draft struct {
	post
	in       *stretch
	expected driver.Version
	done     chan error // one verdict, nil if it is in force
	left     bool       // the caller no longer waits
	batch    *batch     // the batch that sends it; nil before
}

// settle gives the verdict on a post, if a caller waits for one. The first copy in the log decides:
// if it is not in force, no later copy is, whatever delivered it twice.
func (st *stretch) settle(p post, effective bool) {
	d := st.drafts[p.id]
	if d == nil {
		return
	}
	delete(st.drafts, p.id)
	if effective {
		d.offset = p.offset
		d.done <- nil
		return
	}
	d.done <- fmt.Errorf("%w: another write came first", driver.ErrConflict)
}

// draft compares the caller's expected version with the log as far as it was read, and queues the
// post. The log decides whether the version was still current when the post landed.
func (s *Store) draft(ctx context.Context, st *stretch, key string, prev driver.Version, value []byte) (*draft, error) {
	m, named, err := markOf(prev)
	if err != nil {
		return nil, err
	}
	if named && m.offset >= s.readUpTo(st) { // written by a member that has read further
		if err := s.catchUp(ctx, st); err != nil {
			return nil, err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.now != st {
		return nil, st.why
	}
	if !st.matches(key, prev) {
		return nil, fmt.Errorf("%w: the cell has another version", driver.ErrConflict)
	}
	d := &draft{in: st, expected: prev, done: make(chan error, 1)}
	d.post = post{mark: mark{id: draw()}, key: key, prev: m, first: !named, value: clone(value)}
	st.drafts[d.id] = d
	s.enqueue(d)
	return d, nil
}

func (s *Store) readUpTo(st *stretch) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return st.fold.next
}

// await returns once the post was seen in the log, or it is no longer possible to tell whether it
// will be.
func (s *Store) await(ctx context.Context, d *draft) error {
	var err error
	select {
	case err = <-d.done:
		s.leave(d, false)
		return err
	case <-ctx.Done():
		err = context.Cause(ctx)
	case <-d.in.lost:
		err = d.in.why
	}
	s.leave(d, true)
	select {
	case verdict := <-d.done: // at the last moment
		return verdict
	default:
		return err
	}
}

// draw returns a number that no other call draws.
func draw() uint64 {
	var b [8]byte
	_, _ = rand.Read(b[:])
	return binary.BigEndian.Uint64(b[:])
}
