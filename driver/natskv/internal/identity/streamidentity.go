package identity

import (
	"errors"
	"fmt"
	"sync"
	"time"
)

// ErrTwoClusters is that of package natskv.
var ErrTwoClusters = errors.New("there are two buckets of this name")

// ClockSkew is how far the clocks of two servers of one cluster may be apart.
const ClockSkew = time.Minute

// Stream is the identity of the stream that a store uses: the time at which it was created, since
// no two streams are created at the same nanosecond. The zero value is for a store that has not
// seen a stream yet.
type Stream struct {
	mu         sync.Mutex
	created    time.Time // zero: none was seen yet
	seen       time.Time // when it was last there, by the clock of its server
	at         time.Time // the same by the clock of this machine
	connection uint64    // the number of the connection over which it was seen

	confirming sync.Mutex // held while the store checks where a new connection leads
}

// Check refuses a stream that already existed while another one was in use under its name: it
// returns an error that wraps ErrTwoClusters. A stream that was created later replaced the other,
// and is for the protocol to judge. Now is the time by the clock of the stream's server.
func (s *Stream) Check(created, now time.Time, connection uint64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case created.IsZero():
		return nil // an old server
	case !s.created.IsZero() && !created.Equal(s.created) && created.Before(s.seen.Add(-ClockSkew)):
		return fmt.Errorf("%w: the stream here was made on %s, and another one, made on %s, was in use "+
			"until %s: connect to the servers of one cluster only; if this is the right bucket, restart "+
			"this process",
			ErrTwoClusters, Stamp(created), Stamp(s.created), Stamp(s.seen))
	case !created.Equal(s.created):
		s.created, s.seen = created, now
	case now.After(s.seen):
		// A server whose clock is ahead is believed only within a limit.
		s.seen = earlier(now, s.seen.Add(time.Since(s.at)+ClockSkew))
	}
	s.connection, s.at = connection, time.Now()
	return nil
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// Stamp writes a time for people.
func Stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// Met returns when the last stream that the store saw was created, and whether the store saw it
// over the connection with this number. The time is zero if the store saw none.
func (s *Stream) Met(connection uint64) (created time.Time, here bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.created, s.connection == connection
}

// Confirm checks before a write that a new connection leads to the same stream as the old one did.
// A sequence of another stream could be the expected one by chance. Look must Check the stream and
// return when it was created.
func (s *Stream) Confirm(connection func() uint64, look func() (time.Time, error)) error {
	was, here := s.Met(connection())
	if here {
		return nil
	}
	s.confirming.Lock() // for as long as a request may take; the other writes would ask the same
	defer s.confirming.Unlock()
	created, here := s.Met(connection()) // another write may have looked
	if !here {
		var err error
		if created, err = look(); err != nil {
			return err
		}
	}
	if !was.IsZero() && !created.Equal(was) {
		return errors.New("the bucket was recreated, so the version that the write expects may belong to another record")
	}
	return nil
}
