package record

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

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
	var w wire
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

func (w *wire) record() Record {
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
func (w *wire) checkLease() error {
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
