// Package record is the wire format: the small JSON document that the cell of an election holds.
//
// The format is a promise. Old bytes always decode; golden files in testdata check this.
package record

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
)

// DefaultLease is the lease of a candidate whose settings name none.
const DefaultLease = 15 * time.Second

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
// candidate may claim it before its lease has passed, unless it is Released. Wire describes the
// fields.
type Record struct {
	LeaderID    string
	LeaderAddr  string
	LastUpdated time.Time
	Term        uint64
	Lease       time.Duration // whole milliseconds
	Incarnation string
	Seq         uint64
	Nonce       string
	Released    bool
	Drift       uint32 // in parts per million
	Successor   string
	Request     *Request
	Priority    int
	Metadata    map[string]string
}

// Request asks the holder of a term to hand over.
type Request struct {
	// Term is the term that should end; a request for another term has no effect.
	Term uint64 `json:"term"`
	// To names the requested successor, in UTF-8 of at most 256 bytes. Missing: any candidate.
	To string `json:"to,omitempty"`
	// By names the requester, for people, in UTF-8 of at most 256 bytes, or is missing.
	By string `json:"by,omitempty"`
	// Offer is true, or missing. It marks a request that counts only once the candidate that To
	// names has accepted it, which it does by removing this mark. Members of earlier releases
	// ignore the mark: they obey at once.
	Offer bool `json:"offer,omitempty"`
}

// Held reports whether this record has a holder.
func (r *Record) Held() bool { return r.LeaderID != "" && !r.Released }

// Wire is the JSON form of Record. The order of the fields is the order in the bytes. Decode checks
// the limits of the format; a Wire alone has what the bytes say. Names are UTF-8.
type Wire struct {
	// LeaderID is the holder's Config.ID, a label of at most 256 bytes; empty in a vacant record.
	LeaderID string `json:"leaderID"`
	// LeaderAddr is the holder's Config.Address, at most 256 bytes.
	LeaderAddr string `json:"leaderAddr"`
	// LastUpdated is the writer's wall clock (RFC 3339), for people; 0001-01-01T00:00:00Z in a
	// released or vacant record. It decides nothing.
	LastUpdated time.Time `json:"lastUpdated"`
	// Term is the fencing token: 0 to 2^53-1.
	Term uint64 `json:"term"`
	// LeaseMillis is the length of the lease in milliseconds: 1 to 3,600,000.
	LeaseMillis int64 `json:"leaseMillis"`
	// Incarnation is the random name of one Election value in one process, at most 64 bytes. It
	// identifies the holder; leaderID does not. It may be empty only if leaderID is empty.
	Incarnation string `json:"incarnation"`
	// Seq counts the holder's writes of one term: 0 to 2^53-1.
	Seq uint64 `json:"seq"`
	// Nonce is new in each write of a holder: 1 to 64 bytes. A request copies it.
	Nonce string `json:"nonce"`
	// Released is true if the holder has given up the lease, or missing.
	Released bool `json:"released,omitempty"`
	// Successor is the candidate that may claim first after a release, at most 256 bytes, or
	// missing.
	Successor string `json:"successor,omitempty"`
	// Request is an object that asks for a hand-over, or missing.
	Request *Request `json:"request,omitempty"`
	// Priority is the holder's Config.Priority: -1,000,000 to 1,000,000. Missing: 0. A candidate
	// with a higher one may ask the holder to hand over.
	Priority int `json:"priority,omitempty"`
	// DriftPPM is the writer's bound for the error of its clock rates, in parts per million: 0 to
	// 500,000. 0 or missing: not stated, as in records of older releases.
	DriftPPM uint32 `json:"driftPPM,omitempty"`
	// Metadata is the holder's Config.Metadata: an object of strings, 1,024 bytes of keys and
	// values in all, or missing.
	Metadata map[string]string `json:"metadata,omitempty"`
}

// Encode returns the bytes of a record, or an error that names the limit it breaks. If the document
// has no room for an offer, Encode leaves the offer out: a renewal must not fail because of it.
func Encode(r Record) ([]byte, error) {
	if err := check(&r); err != nil {
		return nil, err
	}
	b, err := json.Marshal(Wire{
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

// ErrForeign means that the bytes are no record: they belong to another program and must not be
// overwritten.
var ErrForeign = errors.New("not an election record")

// ForeignError wraps ErrForeign and the reason why the bytes are no record.
type ForeignError struct{ Reason error }

// Error says that the bytes are no record, and why.
func (e *ForeignError) Error() string { return ErrForeign.Error() + ": " + e.Reason.Error() }

// Unwrap returns ErrForeign and the reason.
func (e *ForeignError) Unwrap() []error { return []error{ErrForeign, e.Reason} }

// BrokenError means that the bytes are a record that breaks a limit of the format. It has the
// fields that could be read.
type BrokenError struct {
	// Lease is the lease in the record, or MaxLease if it cannot be read or is too long. A follower
	// waits at least so long before it claims over the record.
	Lease time.Duration
	// Term is the term in the record, or 0 if it cannot be read.
	Term uint64
	// Reason says what is wrong, such as a broken limit.
	Reason error
}

// Error says what is wrong.
func (e *BrokenError) Error() string { return "malformed election record: " + e.Reason.Error() }

// Unwrap returns the reason.
func (e *BrokenError) Unwrap() error { return e.Reason }

// Decode reads a record. It returns a *ForeignError or a *BrokenError, and never panics. Unknown
// fields are ignored.
func Decode(b []byte) (Record, error) {
	if len(b) > MaxBytes {
		return Record{}, &ForeignError{fmt.Errorf("value is longer than %d bytes", MaxBytes)}
	}
	var w Wire
	err := json.Unmarshal(b, &w)
	if err == nil {
		r := w.record()
		if err = w.checkLease(); err == nil {
			err = check(&r)
		}
		if err == nil {
			return r, nil
		}
	}
	return Record{}, classify(b, err)
}

func (w *Wire) record() Record {
	r := Record{
		LeaderID: w.LeaderID, LeaderAddr: w.LeaderAddr, LastUpdated: w.LastUpdated, Term: w.Term,
		Incarnation: w.Incarnation, Seq: w.Seq, Nonce: w.Nonce,
		Released: w.Released, Successor: w.Successor, Request: w.Request,
		Priority: w.Priority, Drift: w.DriftPPM, Metadata: w.Metadata,
	}
	if w.checkLease() == nil {
		r.Lease = time.Duration(w.LeaseMillis) * time.Millisecond
	}
	return r
}

// checkLease checks the number itself, because a number that overflows a Duration would wrap round
// into a valid lease.
func (w *Wire) checkLease() error {
	if most := MaxLease.Milliseconds(); w.LeaseMillis < 1 || w.LeaseMillis > most {
		return fmt.Errorf("leaseMillis is %d, not from 1 to %d", w.LeaseMillis, most)
	}
	return nil
}

// classify distinguishes a damaged record from foreign bytes: only a record has these two fields.
func classify(b []byte, reason error) error {
	var fields map[string]json.RawMessage
	if json.Unmarshal(b, &fields) != nil {
		return &ForeignError{reason}
	}
	if fields["leaseMillis"] == nil && fields["incarnation"] == nil {
		return &ForeignError{older(fields, reason)}
	}
	broken := &BrokenError{Lease: MaxLease, Reason: reason}
	var millis int64
	if json.Unmarshal(fields["leaseMillis"], &millis) == nil && millis > 0 && millis < MaxLease.Milliseconds() {
		broken.Lease = time.Duration(millis) * time.Millisecond
	}
	var term uint64
	if json.Unmarshal(fields["term"], &term) == nil && term <= MaxTerm {
		broken.Term = term
	}
	return broken
}

// older says so if the bytes are a predecessor's record: the user may want to migrate from it.
func older(fields map[string]json.RawMessage, reason error) error {
	if fields["leaderID"] == nil || fields["lastUpdated"] == nil {
		return reason
	}
	return errors.New("a lockfile of S3lect, which only the legacy mode of package s3lect shares")
}

// ErrRequested means that the record already has a request that counts, or this very offer. Another
// one is possible only after the holder's next write.
var ErrRequested = errors.New("a hand-over was already requested")

// AddRequest adds a request to the bytes of a record, in place of an offer if there is one, and
// changes no other byte. So fields that this version does not know survive, and followers see the
// same write of the holder, and restart no timer. It returns ErrRequested, the errors of Decode, or
// an error if the result would break a limit.
func AddRequest(value []byte, q Request) ([]byte, error) {
	r, err := Decode(value)
	switch {
	case err != nil:
		return nil, err
	case r.Request != nil && (!r.Request.Offer || *r.Request == q):
		return nil, ErrRequested
	}
	if err := request(&q); err != nil {
		return nil, err
	}
	field, err := json.Marshal(q)
	if err != nil {
		return nil, err
	}
	value = withoutRequest(value)
	end := bytes.LastIndexByte(value, '}')
	out := append([]byte{}, value[:end]...)
	out = append(out, `,"request":`...)
	out = append(out, field...)
	out = append(out, value[end:]...)
	if len(out) > MaxBytes {
		return nil, about("record", tooLong(len(out), MaxBytes))
	}
	return out, nil
}

// withoutRequest returns the bytes of a record without each field that decodes into Request. There
// is a field before it or after it: a record without others is not valid.
func withoutRequest(value []byte) []byte {
	d := json.NewDecoder(bytes.NewReader(value))
	_, _ = d.Token() // the opening brace
	from := d.InputOffset()
	out := append([]byte{}, value[:from]...)
	for kept, cut := false, false; d.More(); from = d.InputOffset() {
		name, _ := d.Token()
		var field json.RawMessage
		_ = d.Decode(&field)
		member := value[from:d.InputOffset()]
		switch {
		case strings.EqualFold(name.(string), "request"):
			cut = true
			continue
		case cut && !kept:
			member = member[bytes.IndexByte(member, ',')+1:]
		}
		out, kept = append(out, member...), true
	}
	return append(out, value[from:]...)
}

// Random returns 64 random bits, for nonces and incarnations. They must differ even after a machine
// was cloned, so the bits come from the system's generator.
func Random() uint64 {
	var b [8]byte
	rand.Read(b[:])
	return binary.LittleEndian.Uint64(b[:])
}
