package group

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// nominee is whether this member is the nominee, and the watches of that.
type nominee struct {
	usable time.Duration // how long an answer is valid, from when its request was sent
	// a member that is not the nominee may lead only while its place is confirmed
	gated   bool
	changed chan struct{} // capacity 1: a watch may need a call

	mu       sync.Mutex
	assigned bool // the group gave partition 0 to this member
	// since is when the last request was sent that the coordinator answered to a member; zero: none
	// counts.
	since time.Time
	// confirmed is when the last request was sent that the coordinator answered to a member of a
	// group that is not about to be shared out; zero: none counts. A group that is about to be
	// shared out removes a member that does not join again in time.
	confirmed time.Time
	ended     bool
	timer     *time.Timer
	watches   []*watch
}

type watch struct {
	see  func(bool)
	told bool // the first call was made
	last bool
	may  bool // the last mayLead
}

func newNominee(usable time.Duration, gated bool) *nominee {
	n := &nominee{usable: usable, gated: gated, changed: make(chan struct{}, 1)}
	n.timer = time.AfterFunc(usable, n.ring)
	n.timer.Stop()
	return n
}

// wake makes the goroutine of tell look.
func (n *nominee) wake() {
	select {
	case n.changed <- struct{}{}:
	default:
	}
}

// assign records the group's decision, from the answer to a request that was sent then.
func (n *nominee) assign(yes bool, sent time.Time) {
	n.mu.Lock()
	n.assigned = yes
	n.mu.Unlock()
	n.answered(sent, true)
}

// answered records that the coordinator treated the sender of a request that was sent then as a
// member, and whether it confirmed a place that lasts for a session.
func (n *nominee) answered(sent time.Time, confirmed bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if sent.After(n.since) {
		n.since = sent
	}
	if confirmed && sent.After(n.confirmed) {
		n.confirmed = sent
	}
	n.arm()
	n.wake()
}

// arm sets the timer to the next end of an answer. It is called under the lock.
func (n *nominee) arm() {
	for _, sent := range []time.Time{n.confirmed, n.since} { // the latter is never earlier
		if left := n.remaining(sent); left > 0 && !n.ended {
			n.timer.Reset(left)
			return
		}
	}
}

// ring is called when an answer has expired.
func (n *nominee) ring() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.arm()
	n.wake()
}

// lose records that the group gave this member's place away.
func (n *nominee) lose() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.assigned, n.since, n.confirmed = false, time.Time{}, time.Time{}
	n.wake()
}

// end is final.
func (n *nominee) end() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.ended = true
	n.timer.Stop()
	n.wake()
}

// owned reports whether partition 0 was given to this member and not taken away, at any age.
func (n *nominee) owned() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.assigned
}

// holds computes the answer from the clock. It is called under the lock.
func (n *nominee) holds() bool { return n.assigned && !n.ended && n.remaining(n.since) > 0 }

// admits reports whether this member may lead: anyway, as the nominee, or because it has a place in
// the group. While it has, brokers admit no member of another kind. It is called under the lock.
func (n *nominee) admits() bool {
	return !n.gated || n.holds() || !n.ended && n.remaining(n.confirmed) > 0
}

// remaining returns how long an answer to a request that was sent then is still valid.
func (n *nominee) remaining(sent time.Time) time.Duration { return n.usable - elapsed(sent) }

// elapsed returns the larger of the times by the monotonic clock and the wall clock: the first does
// not count the time that a machine sleeps.
func elapsed(since time.Time) time.Duration {
	now := time.Now()
	return max(now.Sub(since), now.Round(0).Sub(since.Round(0)))
}

func (n *nominee) now() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.holds()
}

func (n *nominee) mayLead() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.admits()
}

// watch registers see. Stop may be called from it.
func (n *nominee) watch(see func(bool)) (stop func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.ended {
		go see(false)
		return func() {}
	}
	w := &watch{see: see}
	n.watches = append(n.watches, w)
	n.wake()
	return func() { n.unwatch(w) }
}

func (n *nominee) unwatch(w *watch) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.watches = slices.DeleteFunc(n.watches, func(other *watch) bool { return other == w })
}

// tell calls the watches that do not know the present state, without the lock, until the nomination
// has ended and they know.
func (n *nominee) tell() {
	for range n.changed {
		w, state, over := n.next()
		for ; w != nil; w, state, over = n.next() {
			w.see(state)
		}
		if over {
			return
		}
	}
}

// next returns a watch to call, and the state. The watch counts as called from here on. Without a
// watch, over reports that there will never be another.
func (n *nominee) next() (w *watch, state, over bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	state, may := n.holds(), n.admits()
	for _, w := range n.watches {
		if !w.told || w.last != state || w.may != may {
			w.told, w.last, w.may = true, state, may
			return w, state, false
		}
	}
	return nil, state, n.ended
}

// MetadataKey is the key under which a leader publishes the consumer group that nominates it.
const MetadataKey = "kafka.group"

// ErrOtherGroup reports that another consumer group nominates the leader of the election.
var ErrOtherGroup = errors.New("two consumer groups nominate for one election")

// Metadata returns an addition to the metadata of a candidate that the group of this name
// nominates, for CheckLeader.
func Metadata(name string) map[string]string { return map[string]string{MetadataKey: name} }

// CheckLeader checks a leader's metadata, for a candidate that the group of this name nominates. It
// returns an error that wraps ErrOtherGroup if another group nominates the leader. The error names
// both groups and the remedy. Each group then has its own nominee. The two nominees take the
// election from each other again and again, but never lead at the same time. A leader without a
// group is not an error.
func CheckLeader(name string, leader map[string]string) error {
	other := leader[MetadataKey]
	if other == "" || other == name {
		return nil
	}
	return fmt.Errorf("%w: this candidate is of group %q, and the leader of group %q: give all candidates of an election the same group, "+
		"and each group an election or a topic of its own", ErrOtherGroup, name, other)
}
