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
		CheckPriority(r.Priority),
		drift(r.Drift),
		holder(r),
		request(r.Request),
		CheckMetadata(r.Metadata),
	)
}

// CheckName returns an error unless an id or an address is valid UTF-8 of at most MaxName bytes.
func CheckName(field, s string) error { return name(field, s, MaxName) }

func name(field, s string, limit int) error {
	if len(s) > limit {
		return tooLong(field, len(s), limit)
	}
	if !utf8.ValidString(s) {
		return fmt.Errorf("%s is not valid UTF-8", field)
	}
	return nil
}

func tooLong(field string, n, limit int) error {
	return fmt.Errorf("%s has %d bytes, more than %d", field, n, limit)
}

func number(field string, n uint64) error {
	if n > MaxTerm {
		return fmt.Errorf("%s is %d, more than 2^53-1", field, n)
	}
	return nil
}

// CheckPriority returns an error if a priority is beyond MaxPriority.
func CheckPriority(n int) error {
	if n < -MaxPriority || n > MaxPriority {
		return fmt.Errorf("priority is %d, beyond ±%d", n, MaxPriority)
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

// holder: the incarnation distinguishes the holder from others of the same name, and the nonce each
// state from the next.
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
			return fmt.Errorf("metadata %q is not valid UTF-8", k)
		}
		n += len(k) + len(v)
	}
	if n > MaxMetadata {
		return tooLong("metadata", n, MaxMetadata)
	}
	return nil
}
