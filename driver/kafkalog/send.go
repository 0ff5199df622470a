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
	// maxSending is how many batches may be on their way. A broker takes one after the other; the second is for when the
	// first hangs.
	maxSending = 2
	// maxBatch bounds a batch in bytes, but for its last record. A topic must take twice that.
	maxBatch = 32 << 10
	// aroundPost is no less than what a record takes besides its key and value: numbers of at most 19 digits, and lengths.
	aroundPost = 160
)

// batch is what is sent by one request: all that was drafted while the one before was on its way.
type batch struct {
	drafts  []*draft
	waiting int  // callers
	given   bool // up by one of them
	at      place
	moved   bool // the leader that it went to leads no more
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

// send sends what is queued, until nothing is.
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

// nextBatch takes from the queue what goes to one log and fits. A sender for whom nothing is left ends in the same breath.
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

// stamp says what was read until now: a crowd of drafts must not be too far behind for having waited for one another. It
// returns false if the cell has another version by now, which needs no sending.
func (st *stretch) stamp(d *draft) bool {
	if !st.matches(d.key, d.expected) {
		st.settle(d.post, false)
		return false
	}
	d.at, d.base = st.fold.next, st.fold.base()
	return true
}

// endBatch passes a failure on to those who wait still. An acknowledgement says nothing that the log does not say better.
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

// doubt has the follower look for the leader, if this one had time to answer a batch and did not: that of the caller who gave
// up, or one behind which it waited to be sent. It is called under the lock.
func (s *Store) doubt(b *batch) {
	silent := func(b *batch) bool { return b != nil && time.Since(b.sent) >= s.wire.patience() }
	if s.interrupt != nil && (silent(b) || slices.ContainsFunc(s.batches, silent)) {
		s.interrupt(errKicked)
	}
}

// leave is called when a caller waits no more. Requests for which nobody does are given up when all are: to give up one
// breaks the connection of the others.
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
