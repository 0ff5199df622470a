package kafkalog

import (
	"context"
	"errors"
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
