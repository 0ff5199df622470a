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

// never is the version of a cell that was never written: a post from it is in force only if no
// other is.
const never driver.Version = "never"

// stretch is one log as it is followed, from where reading began until a fault after which it
// cannot go on. Its fields are guarded by the store's lock.
type stretch struct {
	at     place
	fold   *fold
	seen   tally
	epoch  int32 // of the last record read; -1 if there was none
	drafts map[uint64]*draft
	waits  []wait
	lost   chan struct{} // closed when nothing more will come
	why    error         // once lost
}

// wait is a caller that needs the log to be read up to an offset.
type wait struct {
	until int64
	done  chan struct{}
}

var errClosed = errors.New("the store is closed")

// current returns the stretch that is being followed. While there is none it waits, unless an
// operator must act first.
func (s *Store) current(ctx context.Context) (*stretch, error) {
	for {
		s.mu.Lock()
		now, trouble, changed := s.now, s.trouble, s.changed
		s.mu.Unlock()
		switch {
		case now != nil:
			return now, nil
		case errors.Is(trouble, errClosed) || errors.Is(trouble, driver.ErrDenied):
			return nil, trouble
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, because(context.Cause(ctx), trouble)
		}
	}
}

// because adds to an error the last obstacle to reading.
func because(err, trouble error) error {
	if trouble == nil {
		return err
	}
	return fmt.Errorf("%w; meanwhile: %w", err, trouble)
}

func (s *Store) reach(ctx context.Context, st *stretch, until int64) error {
	s.mu.Lock()
	if st.fold.next >= until {
		s.mu.Unlock()
		return nil
	}
	done := make(chan struct{})
	st.waits = append(st.waits, wait{until, done})
	s.mu.Unlock()
	select {
	case <-done:
		return nil
	case <-st.lost:
		return st.why
	case <-ctx.Done():
		s.mu.Lock()
		defer s.mu.Unlock()
		for i, w := range st.waits {
			if w.done == done {
				st.waits = append(st.waits[:i], st.waits[i+1:]...)
				break
			}
		}
		return because(context.Cause(ctx), s.trouble)
	}
}

// catchUp waits until the log was read up to its present end. A caller that gives up after some
// time makes the follower doubt the leader.
func (s *Store) catchUp(ctx context.Context, st *stretch) error {
	began := time.Now()
	err := s.readToEnd(ctx, st)
	if err != nil && ctx.Err() != nil && time.Since(began) >= s.wire.patience() {
		s.kick()
	}
	return err
}

// readToEnd asks the partition's leader where the log ends.
func (s *Store) readToEnd(ctx context.Context, st *stretch) error {
	s.mu.Lock()
	at := st.at
	s.mu.Unlock()
	end, err := s.wire.bound(ctx, at, atEnd)
	if err != nil {
		return s.requestFailed(ctx, err)
	}
	return s.reach(ctx, st, end)
}

func (s *Store) entry(st *stretch, key string) driver.Entry {
	e := driver.Entry{Floor: s.raise(st, st.fold.next)}
	switch p := st.fold.state(key); {
	case p != nil:
		e.Version, e.Value = p.version(), clone(p.value)
	case st.pristine(key):
		e.Version, e.Pristine = never, true
	}
	return e
}

// raise returns the floor at an offset. It never falls while the topic is the same, not even with a
// log that lost its end.
func (s *Store) raise(st *stretch, offset int64) uint64 {
	if s.floorOf != st.at.id {
		s.floor, s.floorOf = 0, st.at.id
	}
	s.floor = max(s.floor, uint64(offset))
	return s.floor
}

// pristine reports whether nothing was ever written under the key. Only the partition's first
// leader can vouch for that. A later one may have lost the end of the log, or not know yet that its
// head was removed, and a reader that begins then cannot tell.
func (st *stretch) pristine(key string) bool { return st.at.epoch == 0 && st.fold.pristine(key) }

// matches reports whether a version is that of the cell. It is called under the lock.
func (st *stretch) matches(key string, prev driver.Version) bool {
	p := st.fold.state(key)
	switch prev {
	case "":
		return p == nil
	case never:
		return st.pristine(key)
	}
	return p != nil && p.version() == prev
}

// markOf returns the post that a version names. Absence names none.
func markOf(v driver.Version) (m mark, named bool, err error) {
	if v == "" || v == never {
		return mark{}, false, nil
	}
	m, err = parseMark(string(v))
	return m, true, err
}

func clone(b []byte) []byte {
	if len(b) == 0 {
		return nil
	}
	return append([]byte{}, b...)
}

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
