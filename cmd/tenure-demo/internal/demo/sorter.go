package demo

import (
	"slices"
	"time"

	"github.com/tenure-go/tenure/cmd/internal/stamp"
)

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
