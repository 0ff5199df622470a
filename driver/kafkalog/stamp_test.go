package kafkalog

import (
	"errors"
	"testing"
	"time"

	"github.com/tenure-go/tenure/driver"
)

// TestCreateThatWaitedForAnotherIsResent: of two creates in one process, the second waits until the
// first is read back. If it were sent unchanged, it would state that its writer has read the log up
// to there and found nothing. Then both would be in force.
func TestCreateThatWaitedForAnotherIsResent(t *testing.T) {
	for _, absent := range []driver.Version{never, ""} {
		t.Run("from "+string(absent), func(t *testing.T) {
			st := &stretch{fold: newFold(0, 0, window), epoch: -1, drafts: map[uint64]*draft{}, lost: make(chan struct{})}
			// No post is sent by itself.
			s := &Store{now: st, ctx: t.Context(), senders: maxSending, wire: &wire{timeout: time.Minute}}
			create := func(value string) *draft {
				d, err := s.draft(t.Context(), st, "key", absent, []byte(value))
				if err != nil {
					t.Fatal(err)
				}
				return d
			}
			first := create("first")
			s.sends(t, st, 1)
			second := create("second") // the first one is not known yet
			s.lands(st, first)
			if err := <-first.done; err != nil {
				t.Fatalf("the first create: %v", err)
			}
			s.sends(t, st, 0)
			s.lands(st, second)
			if err := <-second.done; !errors.Is(err, driver.ErrConflict) {
				t.Errorf("the second create: %v; want a conflict", err)
			}
			if p := st.fold.state("key"); string(p.value) != "first" {
				t.Errorf("in force is %s", p.value)
			}
		})
	}
}

// sends requires that n posts are ready to be sent now.
func (s *Store) sends(t *testing.T, st *stretch, n int) {
	t.Helper()
	_, b := s.nextBatch()
	if b == nil {
		b = &batch{}
	}
	if len(b.drafts) != n {
		t.Errorf("%d posts are sent at %d; want %d", len(b.drafts), st.fold.next, n)
	}
}

// lands appends a post to the log, if it was sent, and reads it.
func (s *Store) lands(st *stretch, d *draft) {
	if d.batch == nil {
		return
	}
	p := d.post
	p.offset = st.fold.next
	st.settle(p, st.fold.apply(p))
}
