package sqlstore

import "github.com/tenure-go/tenure/driver"

// arrival is the first state that a Store read of a key since the era changed: the server may be a
// former primary that took over again and lacks later writes. The version is "" if there was no
// row, or if this Store has written the key since.
type arrival struct {
	era     string
	version driver.Version
}

// lastArrival returns nil if the Store does not know the key. A call asks for it before it sends a
// statement.
func (s *Store) lastArrival(key string) *arrival {
	last, _ := s.met.Load(key)
	a, _ := last.(*arrival)
	return a
}

// arrive records an arrival, unless another call has recorded one after last. The answer to that
// call may be the later one.
func (s *Store) arrive(key string, last *arrival, now arrival) {
	if last == nil {
		s.met.LoadOrStore(key, &now)
		return
	}
	s.met.CompareAndSwap(key, last, &now)
}

// arrives reports whether a version that was just read is still that of the arrival.
func (s *Store) arrives(key string, last *arrival, era string, v driver.Version) bool {
	if last != nil && last.era == era {
		return last.version == v && v != ""
	}
	s.arrive(key, last, arrival{era, v})
	return v != ""
}
