package tenure

import (
	"time"

	"github.com/tenure-go/tenure/internal/protocol"
)

// RecordKind names the kind of value that the store holds under the name of an election.
type RecordKind string

// The kinds of record.
const (
	RecordAbsent    RecordKind = "absent"    // nothing
	RecordVacant    RecordKind = "vacant"    // never held yet, or written by Reset
	RecordHeld      RecordKind = "held"      // a leader's; its lease may have expired
	RecordReleased  RecordKind = "released"  // a former leader's
	RecordMalformed RecordKind = "malformed" // one that breaks a limit of the format
	RecordForeign   RecordKind = "foreign"   // not an election record
)

// Record is the value that was last seen in the store, for display.
type Record struct {
	// Kind is empty before the first look.
	Kind RecordKind
	// Problem wraps ErrMalformed or ErrForeign, and is nil otherwise.
	Problem error
	// By is the ID of the present or last leader. It is empty if there was none.
	By   string
	Term uint64
	// Lease is how long others wait after they first saw this record, unless it is released. A
	// malformed record may hide it: then it is MaxLease.
	Lease time.Duration
	// Seen is when this process first saw the holder's last write, by its wall clock. Nobody else
	// is elected before the lease has passed since Seen.
	Seen time.Time
	// Updated is the holder's wall clock at that write.
	Updated  time.Time
	Priority int
	// Request is a request that the holder has not fulfilled yet, or nil.
	Request *Request
}

// Request is a request for the leader to hand over.
type Request struct {
	To string // empty: to any candidate
	By string
}

// recordInView returns the record in view. It runs under the lock.
func (m *runner) recordInView() Record {
	c, since := m.machine.InView()
	r := Record{
		Kind: kindOf(&c), Problem: problemOf(&c), By: c.Record.LeaderID, Term: c.Record.Term, Lease: c.Record.Lease,
		Seen: since, Updated: c.Record.LastUpdated, Priority: c.Record.Priority,
	}
	if q := c.Record.Request; q != nil && q.Term == c.Record.Term {
		r.Request = &Request{To: q.To, By: q.By}
	}
	return r
}

func problemOf(c *protocol.Cell) error {
	switch c.Kind {
	case protocol.Foreign:
		return protocol.Because(ErrForeign, c.Problem)
	case protocol.Malformed:
		return protocol.Because(ErrMalformed, c.Problem)
	}
	return nil
}

func kindOf(c *protocol.Cell) RecordKind {
	switch {
	case c.Kind == protocol.Absent:
		return RecordAbsent
	case c.Kind == protocol.Foreign:
		return RecordForeign
	case c.Kind == protocol.Malformed:
		return RecordMalformed
	case c.Record.Released:
		return RecordReleased
	case c.Record.LeaderID == "":
		return RecordVacant
	}
	return RecordHeld
}
