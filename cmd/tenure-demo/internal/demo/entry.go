package demo

import (
	"context"
	"slices"
	"time"

	"github.com/tenure-go/tenure/cmd/internal/stamp"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/internal/records"
)

// entry is one thing that happened: an event of a candidate, a deed of the demo, or a sight of the
// record.
type entry struct {
	at    stamp.Time
	event *event
	deed  *deed
	sight *sight
}

// deed is an action or an observation of the demo outside of the election.
type deed struct {
	time time.Time // the wall clock, for people
	do   do
	id   string // of the candidate; empty if it concerns none
	term uint64
	pid  int
	text string
	// expected is true if the deed follows from an earlier event. Only verbose output shows it.
	expected bool
}

// do names a deed.
type do string

// The deeds.
const (
	doStart  do = "start"  // a candidate's process is started
	doKill   do = "kill"   // the leader is killed
	doPause  do = "pause"  // the leader is frozen
	doResume do = "resume" // the frozen process continues
	doStop   do = "stop"   // the leader is asked to end
	doDied   do = "died"   // a candidate's process ended, but the demo did not end it
	doOutput do = "output" // a candidate wrote to its standard error
	doStore  do = "store"  // the demo's own connection was lost, or is back
	doPeer   do = "peer"   // reports of the leader do not reach a candidate
	doAdvise do = "advise" // the store has an unwise setting
	doUnseen do = "unseen" // the demo cannot see renewals
)

// sight is the election's record as the store showed it.
type sight struct {
	absent bool // deleted
	term   uint64
	nonce  string // new in every write of a holder
	lease  time.Duration
	held   bool
	// address is the published address of the leader.
	address string
}

// sights is the number of pushes that may wait. More are dropped; at worst the least time of a
// failover is then unknown.
const sights = 256

// look turns pushes of the store into entries. Their stamps are about the moments from which
// followers count the lease, since pushes come at once.
func look(ctx context.Context, store driver.Watcher, key string) (<-chan entry, func(), error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second) // to begin to watch
	defer cancel()
	seen := make(chan entry, sights)
	stop, err := store.Watch(ctx, key, func(e driver.Entry) {
		select {
		case seen <- entry{at: stamp.Now(), sight: read(e)}:
		default:
		}
	})
	return seen, stop, err
}

// read takes the fields of a sight from a record.
func read(e driver.Entry) *sight {
	r := records.Read(e)
	return &sight{absent: r.Absent, term: r.Term, nonce: r.Nonce, lease: r.Lease, held: r.Held(), address: r.Address}
}

// hold is how long an entry waits for others that happened before it and are still on their way.
const hold = 50 * time.Millisecond

// sorter puts entries of several processes in order. An entry that comes later than hold, as from a
// process that was frozen, is let through at once and out of order.
type sorter struct{ waiting []entry }

func (s *sorter) add(e entry) {
	i := len(s.waiting)
	for i > 0 && s.waiting[i-1].at > e.at {
		i--
	}
	s.waiting = slices.Insert(s.waiting, i, e)
}

// due returns the entries that have waited long enough.
func (s *sorter) due(now stamp.Time) []entry {
	n := 0
	for n < len(s.waiting) && now.Sub(s.waiting[n].at) >= hold {
		n++
	}
	ready := slices.Clone(s.waiting[:n])
	s.waiting = slices.Delete(s.waiting, 0, n)
	return ready
}

// next returns the time until an entry is due; false if none waits.
func (s *sorter) next(now stamp.Time) (time.Duration, bool) {
	if len(s.waiting) == 0 {
		return 0, false
	}
	return max(0, hold-now.Sub(s.waiting[0].at)), true
}
