package kafkalog

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/kafkalog/internal/broker"
)

const (
	// maxSending is how many batches may be on their way. A broker takes one after the other; the
	// second is for when the first hangs.
	maxSending = 2
	// maxBatch bounds a batch in bytes, except for its last record. A topic must take twice that.
	maxBatch = 32 << 10
	// aroundPost is at least as long as a record's parts besides key and value: numbers of at most
	// 19 digits, and lengths.
	aroundPost = 160
)

// batch is the content of one request: all drafts made while the one before was on its way.
type batch struct {
	drafts  []*draft
	waiting int  // callers
	given   bool // given up by one of them
	at      place
	moved   bool // the leader that it went to no longer leads
	sent    time.Time
	cancel  context.CancelFunc
}

// enqueue is called under the lock.
func (s *Store) enqueue(d *draft) {
	s.queue = append(s.queue, d)
	if s.senders < maxSending {
		s.senders++
		s.work.Go(s.send)
	}
}

// send sends the queue until it is empty.
func (s *Store) send() {
	for {
		ctx, b := s.nextBatch()
		if b == nil {
			return
		}
		err := s.sendBatch(ctx, b)
		s.endBatch(b, err)
	}
}

func (s *Store) sendBatch(ctx context.Context, b *batch) error {
	posts := make([]post, 0, len(b.drafts))
	for _, d := range b.drafts {
		posts = append(posts, d.post)
	}
	return s.wire.produce(ctx, b.at, encodeBatch(posts, b.at.tag(), time.Now()))
}

// nextBatch takes the drafts from the queue that go to one log and fit. A sender without any ends
// at once, under the same lock.
func (s *Store) nextBatch() (context.Context, *batch) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b, size := &batch{}, 0
	for len(s.queue) > 0 && size < maxBatch {
		d := s.queue[0]
		if len(b.drafts) > 0 && d.in != b.drafts[0].in {
			break
		}
		s.queue = s.queue[1:]
		if d.left || s.now != d.in || !d.in.stamp(d) {
			continue
		}
		d.batch, b.drafts = b, append(b.drafts, d)
		size += len(d.value) + len(d.key) + aroundPost
	}
	if len(b.drafts) == 0 {
		s.senders--
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(s.ctx, s.wire.timeout)
	b.cancel, b.waiting, b.sent = cancel, len(b.drafts), time.Now()
	b.at = b.drafts[0].in.at // as it was when the posts were stamped
	s.batches = append(s.batches, b)
	return ctx, b
}

// stamp writes how far the log was read by now: many drafts that waited for one another must not be
// too far behind because of that. It returns false if the cell has another version by now; then the
// draft is not sent.
func (st *stretch) stamp(d *draft) bool {
	if !st.matches(d.key, d.expected) {
		st.settle(d.post, false)
		return false
	}
	d.at, d.base = st.fold.next, st.fold.base()
	return true
}

// endBatch passes a failure on to callers that still wait. An acknowledgment adds nothing to the
// log.
func (s *Store) endBatch(b *batch, err error) {
	b.cancel()
	err = broker.Denied(err)
	s.mu.Lock()
	if err != nil && b.moved {
		err = errMoved
	}
	s.batches = slices.DeleteFunc(s.batches, func(other *batch) bool { return other == b })
	abandoned := b.waiting == 0
	if err != nil {
		for _, d := range b.drafts {
			if _, waiting := d.in.drafts[d.id]; waiting {
				delete(d.in.drafts, d.id)
				d.done <- err
			}
		}
	}
	s.mu.Unlock()
	if err != nil && !abandoned && !errors.Is(err, driver.ErrDenied) && !errors.Is(err, errMoved) {
		s.kick()
	}
}

// doubt makes the follower look for the leader, if this one had time to answer a batch and did not:
// the batch of the caller that gave up, or one that it had to wait behind. It is called under the
// lock.
func (s *Store) doubt(b *batch) {
	silent := func(b *batch) bool { return b != nil && time.Since(b.sent) >= s.wire.patience() }
	if s.interrupt != nil && (silent(b) || slices.ContainsFunc(s.batches, silent)) {
		s.interrupt(errKicked)
	}
}

// leave is called when a caller no longer waits. A request without waiting callers is given up only
// when no request has any: giving up one breaks the connection of the others.
func (s *Store) leave(d *draft, gaveUp bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(d.in.drafts, d.id)
	d.left = true
	if gaveUp {
		s.doubt(d.batch)
	}
	if d.batch == nil {
		return
	}
	d.batch.waiting--
	d.batch.given = d.batch.given || gaveUp
	if slices.ContainsFunc(s.batches, func(b *batch) bool { return b.waiting > 0 }) {
		return
	}
	for _, b := range s.batches {
		if b.given {
			b.cancel()
		}
	}
}

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
