package kafkalog

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/kafkalog/internal/broker"
	"github.com/twmb/franz-go/pkg/kerr"
)

const (
	// longPoll is how long the leader holds a fetch without records: twelve requests a minute while
	// there are none.
	longPoll = 5 * time.Second
	// shortPoll is for a log that is known to end further on.
	shortPoll = 100 * time.Millisecond
	// The pause after a failure grows from the first to the last, until records come again. It
	// grows less while the records that were read are still valid and only the leader is missing,
	// as for some seconds after a broker's death.
	firstPause = 20 * time.Millisecond
	lookPause  = 200 * time.Millisecond
	lastPause  = time.Second
)

var errRecreated = errors.New("the topic was recreated: it is another one of the same name, and knows nothing of what was read")

// follow reads the log for as long as the store is open. It is the only goroutine that does.
func (s *Store) follow(ctx context.Context) {
	var p pause
	for ctx.Err() == nil {
		err := s.followOne(ctx, &p)
		s.lose(broker.Denied(err))
		p.sleep(ctx, lastPause)
	}
	s.lose(errClosed)
}

// followOne follows one stretch to its end.
func (s *Store) followOne(ctx context.Context, p *pause) error {
	at, err := s.find(ctx)
	if err != nil {
		return err
	}
	st, err := s.begin(ctx, at)
	if err != nil {
		return err
	}
	p.reset()
	s.adopt(st)
	return s.readOn(ctx, st, p)
}

func (s *Store) find(ctx context.Context) (place, error) {
	ctx, cancel := context.WithTimeout(ctx, s.wire.timeout)
	defer cancel()
	at, err := s.wire.locate(ctx)
	if err == nil && s.isPast(at) {
		err = errPast
	}
	if err != nil {
		return place{}, fmt.Errorf("topic %s: %w", s.wire.topic, err)
	}
	return at, nil
}

// isPast reports whether this place comes from a broker that does not know the present leader. That
// also counts for a log that is read again: that broker's log would end before records that this
// process has written and seen confirmed.
func (s *Store) isPast(at place) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return at.id == s.latest.id && at.epoch < s.latest.epoch
}

// readOn returns why the stretch ended. After a failure that leaves this open, it finds out: the
// leader may have moved, which does not matter, or the topic may be gone. The next fetch is a
// probe, which is answered at once or not at all.
func (s *Store) readOn(ctx context.Context, st *stretch, p *pause) error {
	wait := longPoll
	for ctx.Err() == nil {
		err := s.readOnce(ctx, st, wait)
		if err == nil {
			p.reset()
			s.note(nil)
			wait = longPoll
			continue
		}
		wait = 0
		if err = broker.Denied(err); errors.Is(err, driver.ErrDenied) || broker.IsAny(err, endings) {
			return err
		}
		s.note(err)
		if !errors.Is(err, errMoved) {
			p.sleep(ctx, lookPause)
		}
		if err := s.refind(ctx, st); err != nil {
			return err
		}
	}
	return errClosed
}

// readOnce is one fetch. It ends early if a caller found that the leader may have moved. Without a
// wait it is a probe of a leader that may be dead or frozen: during it the brokers are asked
// whether they have another one, and further doubts do not end it. Otherwise a leader that is
// slower than many callers' patience would be doubted all the time and never read from.
func (s *Store) readOnce(ctx context.Context, st *stretch, wait time.Duration) error {
	ctx, cancel := context.WithCancelCause(ctx)
	var looking sync.WaitGroup
	defer looking.Wait()
	defer cancel(nil)
	doubts := cancel
	if at := st.at; wait == 0 {
		looking.Go(func() { s.look(ctx, at, cancel) })
		doubts = nil
	}
	s.mu.Lock()
	s.interrupt = doubts
	s.mu.Unlock()
	h, err := s.wire.fetch(ctx, st.at, st.fold.next, st.epoch, wait)
	if errors.Is(context.Cause(ctx), errMoved) {
		return errMoved
	}
	if err != nil {
		return err
	}
	s.take(st, h)
	return nil
}

// look interrupts a probe when the brokers have another leader.
func (s *Store) look(ctx context.Context, at place, interrupt context.CancelCauseFunc) {
	var p pause
	for ctx.Err() == nil {
		p.sleep(ctx, lookPause)
		if now, err := s.find(ctx); err == nil && (now.id != at.id || now.epoch > at.epoch) {
			interrupt(errMoved)
		}
	}
}

var (
	errKicked = errors.New("a request failed: the leader may have moved")
	errMoved  = errors.New("the partition has another leader")
	errPast   = errors.New("a broker names a leader of the past")
)

// kick makes the follower look for the leader.
func (s *Store) kick() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.interrupt != nil {
		s.interrupt(errKicked)
	}
}

// refind looks for the leader, and returns an error if the followed log is no longer there. If that
// is not known now, the place stays the old one, and the next fetch fails again.
func (s *Store) refind(ctx context.Context, st *stretch) error {
	at, err := s.find(ctx)
	if err == nil && at.id != st.at.id {
		return errRecreated
	}
	if err == nil {
		err = s.verify(ctx, at, st)
	}
	if err == nil {
		s.move(st, at)
		return nil
	}
	if err = broker.Denied(err); errors.Is(err, kerr.UnknownTopicOrPartition) || errors.Is(err, errDiverged) || errors.Is(err, driver.ErrDenied) {
		return err
	}
	return nil
}

// move goes on with another leader. Requests to the one before are given up: callers that wait for
// them may try again at once.
func (s *Store) move(st *stretch, at place) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if st.at.leader != at.leader {
		for _, b := range s.batches {
			b.moved = true
			b.cancel()
		}
	}
	st.at, s.latest = at, at
}

type pause struct{ next time.Duration }

func (p *pause) reset() { p.next = 0 }

func (p *pause) sleep(ctx context.Context, most time.Duration) {
	p.next = min(max(2*p.next, firstPause), most)
	timer := time.NewTimer(p.next)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
