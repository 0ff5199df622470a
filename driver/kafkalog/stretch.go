package kafkalog

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tenure-go/tenure/driver"
)

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
