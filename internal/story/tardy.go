package story

import "time"

// The least delay beyond the shortest possible time that is worth a look.
const tardyAfter = time.Second

// Late returns the time by which reads may delay a change of leader and its sight: 0 where the
// store pushes, and elsewhere the lease, for the reads of candidates, plus the time between two
// reads of the observer.
func Late(pushed bool, lease, interval time.Duration) time.Duration {
	if pushed {
		return 0
	}
	return lease + interval
}

// Tardy reports whether a change of leader took longer than it should. Least is the shortest
// possible time, below 0 if that is not known: then Tardy returns false. Late is that of Late.
//
// A candidate that is pushed needs milliseconds. One second more than the shortest time leaves room
// for a store call that fails once, or a busy machine. After a silence it is a quarter of the lease
// if that is longer: the clocks of candidates may differ, and a call may take as long as a lease
// allows. So a hand-over of milliseconds is never tardy.
func Tardy(took, least, late time.Duration) bool {
	return least >= 0 && took > least+max(tardyAfter, least/4)+late
}
