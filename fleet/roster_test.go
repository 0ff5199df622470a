package fleet

import (
	"slices"
	"testing"
	"time"
)

// rehearsal is a roster with a member that renews its seat, and a clock.
type rehearsal struct {
	*testing.T
	roster
	now  time.Duration
	left time.Duration
	dead map[int]bool // the seats that are no longer renewed
}

const sec = time.Second

func rehearse(t *testing.T) *rehearsal {
	return &rehearsal{T: t, roster: newRoster(5*sec, 15*sec, 30*sec), now: 100 * sec, left: 15 * sec, dead: map[int]bool{}}
}

// look is the longest time until a renewal is seen: the interval between two reads.
const look = 15 * sec / closely

// renewal returns a new renewal at each read.
func (r *rehearsal) renewal(seat int) time.Time {
	if r.dead[seat] {
		return time.Unix(1, 0)
	}
	return time.Unix(1, int64(r.now))
}

func (r *rehearsal) sees(seat int, id string) { r.see(r.now, seat, id) }
func (r *rehearsal) sits(seat int)            { r.sit(r.now, seat) }

// counts fails unless these seats count after some time. During that time it calls review whenever
// the roster says.
func (r *rehearsal) counts(after time.Duration, want ...int) {
	r.Helper()
	for end := r.now + after; ; {
		got, wait, ok := r.review(r.now, r.left, r.renewal)
		if wait > 0 && r.now+wait <= end {
			r.now += wait
			continue
		}
		r.now = end
		if !ok && want != nil || ok && !slices.Equal(got, want) {
			r.Fatalf("at %v: %v %v, want %v", r.now, got, ok, want)
		}
		return
	}
}

func TestMembersThatStartTogetherCountTogether(t *testing.T) {
	r := rehearse(t)
	r.counts(0)
	r.sits(3)
	r.sees(3, "a")
	r.counts(sec / 2)
	r.sees(5, "b")
	r.counts(sec - 1)
	r.counts(1, 3, 5)
}

func TestRosterWaitsForNewMembers(t *testing.T) {
	r := rehearse(t)
	r.sits(3)
	r.sees(3, "a")
	r.counts(sec, 3)
	r.sees(5, "b")
	r.counts(4*sec, 3)
	r.sees(1, "c") // as long as others come
	r.counts(4*sec, 3)
	r.sees(2, "d") // but not without end
	r.counts(2*sec+look-1, 3)
	r.counts(1, 1, 2, 3, 5)
	r.sees(5, "")
	r.counts(0, 1, 2, 3)
	r.sees(7, "e")
	r.counts(4*sec, 1, 2, 3)
	r.sees(7, "f") // another member
	r.counts(4*sec, 1, 2, 3)
	r.counts(sec+look, 1, 2, 3, 7)
}

// TestCrashedMemberDoesNotCount: a member that has crashed still holds its seat. Members that
// started with it count.
func TestCrashedMemberDoesNotCount(t *testing.T) {
	r := rehearse(t)
	r.sits(3)
	r.sees(3, "a")
	r.counts(sec, 3)
	r.sees(5, "b")
	r.dead[5] = true
	r.counts(10*sec, 3)
	r.sees(5, "")
	r.sees(6, "c")
	r.sees(7, "d")
	r.dead[6] = true
	r.counts(5*sec+15*sec/2-1, 3)
	r.counts(look, 3, 7)
	r.counts(5*sec+15*sec/2, 3, 7)
	r.dead[6] = false // it was not seen for a while
	r.counts(5*sec+2*look, 3, 6, 7)
}

func TestReturningMemberKeepsItsPlace(t *testing.T) {
	r := rehearse(t)
	r.sits(3)
	r.sees(3, "a")
	r.sees(5, "b")
	r.counts(sec, 3, 5)
	r.sees(5, "")
	r.counts(29*sec, 3)
	r.sees(5, "b")
	r.counts(0, 3, 5)
	r.sees(5, "")
	r.counts(30*sec, 3)
	r.sees(5, "b")
	r.counts(4*sec, 3)
	r.counts(sec+look, 3, 5)
	r.sees(5, "c") // a member that takes another's seat is a new member
	r.counts(4*sec, 3)
}

func TestMemberCutOffKeepsItsRoster(t *testing.T) {
	r := rehearse(t)
	r.sits(3)
	r.sees(3, "a")
	r.sees(5, "b")
	r.counts(sec, 3, 5)
	r.left = 7 * sec // its last renewal was a while ago
	r.sees(5, "")
	r.counts(3 * sec)
	r.sees(3, "")
	r.sits(none)
	r.left = 0
	r.counts(20 * sec)
	r.sits(3)
	r.left = 15 * sec
	r.sees(3, "a")
	r.counts(5 * sec) // others are back soon as well
	r.sees(5, "b")
	r.counts(10*sec - 1)
	r.counts(1, 3, 5)
	r.sits(none)
	r.sees(3, "")
	r.counts(30*sec - 1)
	r.counts(1, 5) // without a seat for too long
	r.sits(3)
	r.sees(3, "a")
	r.counts(sec, 3, 5) // no longer than a new member
}

func TestMemberWithoutASeatCountsOthers(t *testing.T) {
	r := rehearse(t)
	r.left = 0
	r.sees(5, "b")
	r.counts(sec, 5)
}
