package record

import (
	"errors"
	"fmt"
	"time"
	"unicode/utf8"
)

// check enforces every limit of the format, for reading and for writing.
func check(r *Record) error {
	return errors.Join(
		name("leaderID", r.LeaderID, MaxName),
		name("leaderAddr", r.LeaderAddr, MaxName),
		name("incarnation", r.Incarnation, MaxToken),
		name("nonce", r.Nonce, MaxToken),
		name("successor", r.Successor, MaxName),
		number("term", r.Term),
		number("seq", r.Seq),
		lease(r.Lease),
		about("priority", CheckPriority(r.Priority)),
		drift(r.Drift),
		holder(r),
		request(r.Request),
		about("metadata", CheckMetadata(r.Metadata)),
	)
}

// CheckName returns an error unless an id or an address is valid UTF-8 of at most MaxName bytes.
// The errors of CheckName, CheckPriority and CheckMetadata are predicates: the caller puts the name
// of its field in front.
func CheckName(s string) error { return text(s, MaxName) }

func name(field, s string, limit int) error { return about(field, text(s, limit)) }

func text(s string, limit int) error {
	if len(s) > limit {
		return tooLong(len(s), limit)
	}
	if !utf8.ValidString(s) {
		return errors.New("is not valid UTF-8")
	}
	return nil
}

func about(field string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s %w", field, err)
}

func tooLong(n, limit int) error { return fmt.Errorf("has %d bytes, more than %d", n, limit) }

func number(field string, n uint64) error {
	if n > MaxTerm {
		return fmt.Errorf("%s is %d, more than 2^53-1", field, n)
	}
	return nil
}

// CheckPriority returns an error if a priority is beyond MaxPriority.
func CheckPriority(n int) error {
	if n < -MaxPriority || n > MaxPriority {
		return fmt.Errorf("is %d, beyond ±%d", n, MaxPriority)
	}
	return nil
}

func drift(ppm uint32) error {
	if ppm > MaxDrift {
		return fmt.Errorf("driftPPM is %d, more than %d", ppm, MaxDrift)
	}
	return nil
}

func lease(d time.Duration) error {
	if d < time.Millisecond || d > MaxLease || d%time.Millisecond != 0 {
		return fmt.Errorf("lease is %v, not whole milliseconds from 1ms to %v", d, MaxLease)
	}
	return nil
}

// holder checks that a holder has an incarnation, which distinguishes it from others of the same
// name, and that the record has a nonce, which distinguishes it from the holder's other writes.
func holder(r *Record) error {
	if r.LeaderID != "" && r.Incarnation == "" {
		return errors.New("leaderID without incarnation")
	}
	if r.Nonce == "" {
		return errors.New("no nonce")
	}
	return nil
}

func request(q *Request) error {
	if q == nil {
		return nil
	}
	return errors.Join(
		number("request.term", q.Term), name("request.to", q.To, MaxName), name("request.by", q.By, MaxName))
}

// CheckMetadata returns an error unless the metadata is valid UTF-8 of at most MaxMetadata bytes in
// all.
func CheckMetadata(m map[string]string) error {
	n := 0
	for k, v := range m {
		if !utf8.ValidString(k) || !utf8.ValidString(v) {
			return fmt.Errorf("is not valid UTF-8 at key %q", k)
		}
		n += len(k) + len(v)
	}
	if n > MaxMetadata {
		return tooLong(n, MaxMetadata)
	}
	return nil
}
