package admin

import "time"

// Kind is the kind of value that the store holds under the name of an election.
type Kind string

// The kinds of value.
const (
	Absent    Kind = "absent"    // nothing
	Vacant    Kind = "vacant"    // no leader yet: put by a candidate where nothing was, or by Reset
	Held      Kind = "held"      // the record of a leader; its lease may have expired
	Released  Kind = "released"  // the record of a former leader
	Malformed Kind = "malformed" // a record with a field or a term out of range
	Foreign   Kind = "foreign"   // not an election record
)

// Record describes the value in the store, for display. To find out whether a program may act, use
// Term.Err of package tenure instead.
type Record struct {
	// Kind is empty before the store was read for the first time.
	Kind Kind
	// Problem describes the fault of a malformed or foreign value; nil otherwise.
	Problem error
	// LeaderID is the ID of the present or last leader. It is empty if there was none.
	LeaderID string
	// Term is the fencing token of that leader; in a vacant record, the highest known term.
	Term uint64
	// Lease is the shortest time that other candidates wait after they first saw this record,
	// unless it is released. If a malformed record does not show it, Lease is 1 h, the longest
	// lease.
	Lease time.Duration
	// Seen is when this process first saw the leader's last write, by its wall clock. No other
	// candidate is elected before Lease has passed since then, unless the record is released.
	Seen time.Time
	// Updated is the leader's wall clock at that write.
	Updated time.Time
	// Priority is the leader's priority.
	Priority int
	// Request is the hand-over request in the record, or nil. A renewal removes it, unless it is an
	// offer that is less than two leases old.
	Request *Request
}

// Request is a request for the leader to hand over.
type Request struct {
	To string // the ID of the wanted successor; empty: any candidate
	By string // the ID of the candidate or operator that asks
	// Offer reports that the leader goes on until the candidate To has accepted.
	Offer bool
}
