package slots

import (
	"context"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/admin"
	"github.com/tenure-go/tenure/clock"
	"github.com/tenure-go/tenure/internal/bridge"
)

// slot is one slot, as this member knows it. Only the goroutine of Run changes it.
type slot struct {
	number   int
	election *tenure.Election
	self     string // the incarnation of this member in the election
	gate     *gate
	pace     pace

	status tenure.Status // of this Run
	// viewed is the time from which the age of the status counts. It counts only if seen.
	viewed clock.Instant
	seen   bool
	// size is the number of slots of the leader; 0 if there is none. It stands for one more lease
	// after that leader has vanished without a release, because an observer may count its lease as
	// over slightly too early.
	size   int
	gone   bool
	goneAt clock.Instant
	// named is when a hand-over to this member was last seen, in the term namedIn.
	named   clock.Instant
	namedIn uint64

	stop    context.CancelFunc // ends this member's campaign or term; nil: it does not take part
	stopped bool               // stop was called
}

// look takes the present status. The time of the view is read first, so that the status is never
// older than it says.
func (s *slot) look(now clock.Reading, lease time.Duration) {
	viewed, ok := bridge.ShownAt(s.election)
	s.status = s.election.Status()
	if ok && s.legible() {
		s.viewed, s.seen = viewed, true
	}
	s.lookAtSize(now, lease)
	if q := s.status.Record.Request; q != nil && q.To == s.election.ID() && s.status.Term == 0 {
		s.named, s.namedIn = now.Instant, s.status.Leader.Term
	}
}

// legible reports whether the record can be read. Damaged bytes may hide the number of a leader
// that goes on, so they count as a slot that was not seen.
func (s *slot) legible() bool {
	kind := s.status.Record.Kind
	return s.status.Known && kind != admin.Malformed && kind != admin.Foreign
}

func (s *slot) lookAtSize(now clock.Reading, lease time.Duration) {
	switch {
	case s.status.Leader.Exists():
		s.size, s.gone = sizeOf(s.status.Leader), false
	case s.size == 0 || s.status.Record.Kind == admin.Released:
		s.size, s.gone = 0, false
	case !s.gone:
		s.gone, s.goneAt = true, now.Instant
	case s.goneLeft(now, lease) <= 0:
		s.size, s.gone = 0, false
	}
}

// goneLeft returns how much longer the number of a vanished leader stands.
func (s *slot) goneLeft(now clock.Reading, lease time.Duration) time.Duration {
	if !s.gone {
		return 0
	}
	return max(lease, s.status.Record.Lease) - now.FollowerSince(s.goneAt)
}

// free reports whether this member may campaign for the slot: nothing shows that another leads it.
func (s *slot) free() bool {
	l := s.status.Leader
	return s.status.Known && (!l.Exists() || l.Incarnation == s.self) && s.status.Record.Kind != admin.Foreign
}

// own reports whether this member leads the slot.
func (s *slot) own() bool { return s.status.Term != 0 }

// offered reports whether the slot is being handed over to this member. The leader removes the
// request from the record when it obeys, and then has FinishWithin to finish.
func (s *slot) offered(now clock.Reading, full *tenure.Config) bool {
	return s.namedIn != 0 && s.status.Leader.Term == s.namedIn &&
		now.FollowerSince(s.named) < full.Lease+full.FinishWithin
}
