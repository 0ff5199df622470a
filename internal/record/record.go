// Package record is the wire format: the small JSON document that the cell of an election holds.
//
// The format is a promise. Old bytes always decode; golden files in testdata check this.
package record

import (
	"encoding/json"
	"time"
)

// Limits of the format. Encode refuses a record that breaks one, and Decode returns a BrokenError.
const (
	// MaxLease is a constant of the protocol: how long a follower waits for a record with an
	// unreadable lease.
	MaxLease = time.Hour
	// MaxTerm is the largest term: beyond 2^53 not every JSON reader keeps integers exact.
	MaxTerm = 1<<53 - 1
	// MaxName is the limit in bytes of an id, a successor and an address.
	MaxName = 256
	// MaxToken is the limit in bytes of an incarnation and a nonce.
	MaxToken = 64
	// MaxPriority bounds priorities in both directions.
	MaxPriority = 1_000_000
	// MaxDrift is the largest bound for the rate of clocks, in parts per million.
	MaxDrift = 500_000
	// MaxMetadata is the limit in bytes of all keys and values of the metadata together.
	MaxMetadata = 1024
	// MaxBytes is the limit of the whole document.
	MaxBytes = 4096
)

// Record is one state of an election. Without a LeaderID it is vacant: it has no holder, and no
// candidate may claim it before its lease has passed, unless it is Released.
type Record struct {
	LeaderID   string
	LeaderAddr string
	// LastUpdated is the writer's wall clock, for people; zero in a released record. It decides
	// nothing.
	LastUpdated time.Time
	// Term is the fencing token.
	Term uint64
	// Lease is in whole milliseconds, at most MaxLease.
	Lease time.Duration
	// Incarnation is the random name of one Election value in one process. It identifies the
	// holder; LeaderID does not.
	Incarnation string
	// Seq counts the holder's writes of one term.
	Seq uint64
	// Nonce is new in each write of a holder. A request copies it.
	Nonce    string
	Released bool
	// Drift is the writer's bound for the error of its clock rates, in parts per million. It is 0
	// if unknown, as in records of older releases.
	Drift     uint32
	Successor string
	Request   *Request
	// Priority is the holder's priority: a candidate with a higher one may ask it to hand over.
	Priority int
	Metadata map[string]string
}

// Request asks the holder of a term to hand over.
type Request struct {
	// Term is the term that should end; a request for another term has no effect.
	Term uint64 `json:"term"`
	// To names the requested successor; empty means any candidate.
	To string `json:"to,omitempty"`
	// By names the requester, for people.
	By string `json:"by,omitempty"`
	// Offer marks a request that counts only once the candidate that To names has accepted it,
	// which it does by removing this mark. Members of earlier releases ignore the mark: they obey
	// at once.
	Offer bool `json:"offer,omitempty"`
}

// Held reports whether this record has a holder.
func (r *Record) Held() bool { return r.LeaderID != "" && !r.Released }

// wire is the JSON form of Record. The order of the fields is the order in the bytes.
type wire struct {
	LeaderID    string            `json:"leaderID"`
	LeaderAddr  string            `json:"leaderAddr"`
	LastUpdated time.Time         `json:"lastUpdated"`
	Term        uint64            `json:"term"`
	LeaseMillis int64             `json:"leaseMillis"`
	Incarnation string            `json:"incarnation"`
	Seq         uint64            `json:"seq"`
	Nonce       string            `json:"nonce"`
	Released    bool              `json:"released,omitempty"`
	Successor   string            `json:"successor,omitempty"`
	Request     *Request          `json:"request,omitempty"`
	Priority    int               `json:"priority,omitempty"`
	DriftPPM    uint32            `json:"driftPPM,omitempty"`
	Metadata    map[string]string `json:"metadata,omitempty"`
}

// Encode returns the bytes of a record, or an error that names the limit it breaks. If the document
// has no room for an offer, Encode leaves the offer out: a renewal must not fail because of it.
func Encode(r Record) ([]byte, error) {
	if err := check(&r); err != nil {
		return nil, err
	}
	b, err := json.Marshal(wire{
		LeaderID: r.LeaderID, LeaderAddr: r.LeaderAddr, LastUpdated: r.LastUpdated.UTC(), Term: r.Term,
		LeaseMillis: r.Lease.Milliseconds(), Incarnation: r.Incarnation, Seq: r.Seq, Nonce: r.Nonce,
		Released: r.Released, Successor: r.Successor, Request: r.Request, Priority: r.Priority, DriftPPM: r.Drift, Metadata: r.Metadata,
	})
	if err != nil {
		return nil, err
	}
	switch {
	case len(b) <= MaxBytes:
		return b, nil
	case r.Request != nil && r.Request.Offer:
		r.Request = nil
		return Encode(r)
	}
	return nil, about("record", tooLong(len(b), MaxBytes))
}
