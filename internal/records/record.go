// Package records reads an election's record as a store shows it, for people. No decision depends
// on it: the election alone decides which member leads, and whether bytes are a record at all.
package records

import (
	"context"
	"encoding/json"
	"time"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/internal/record"
)

// Record holds those fields of the documented record that matter to people. All fields are zero if
// the bytes are not a record.
type Record struct {
	// Absent: the store has no value.
	Absent bool
	// Leader is the ID of the leader that wrote the record, also if it is released. It is empty if
	// the record is vacant.
	Leader string
	// Address is the published address of the leader.
	Address string
	Term    uint64
	// Incarnation names the Election value that wrote the record.
	Incarnation string
	// Seq counts the leader's writes of one term, those that failed included.
	Seq   uint64
	Lease time.Duration
	// Nonce is new in every write of a leader. It stays when another member adds a request.
	Nonce string
	// Updated is when the leader wrote the record, by the leader's clock.
	Updated  time.Time
	Released bool
	// Request is nil if there is no request to hand over.
	Request *Request
}

// Request asks the leader to hand over. Unlike the record's, its JSON has empty names too.
type Request struct {
	Term uint64 `json:"term"`
	// To is empty for any candidate.
	To string `json:"to"`
	By string `json:"by"`
	// Offer: the leader goes on until To has accepted.
	Offer bool `json:"offer,omitempty"`
}

// Asked describes a request to a leader.
func (q Request) Asked() string {
	text := "to hand over"
	if q.To != "" {
		text += " to " + q.To
	}
	if q.Offer {
		text += " once that accepts"
	}
	if q.By != "" {
		text += ", by " + q.By
	}
	return text
}

// Held reports whether a leader holds the election by this record.
func (r Record) Held() bool { return r.Leader != "" && !r.Released }

// Vacant reports whether it is a record without a leader that was not released.
func (r Record) Vacant() bool { return r.Leader == "" && r.Lease > 0 }

// Wish returns the request to hand over, or nil if it was for an earlier term.
func (r Record) Wish() *Request {
	if r.Request == nil || r.Request.Term != r.Term || !r.Held() {
		return nil
	}
	return r.Request
}

// Read returns the fields of an entry's record.
func Read(e driver.Entry) Record {
	if e.Absent() {
		return Record{Absent: true}
	}
	var w record.Wire
	if json.Unmarshal(e.Value, &w) != nil {
		return Record{}
	}
	return Record{
		Leader: w.LeaderID, Address: w.LeaderAddr, Term: w.Term, Incarnation: w.Incarnation, Seq: w.Seq,
		Lease: lease(w.LeaseMillis), Nonce: w.Nonce, Updated: w.LastUpdated, Released: w.Released, Request: (*Request)(w.Request),
	}
}

// lease returns 0 for a number that is negative, and the longest lease for one that is too large,
// as members take it.
func lease(millis int64) time.Duration {
	return time.Duration(min(max(millis, 0), record.MaxLease.Milliseconds())) * time.Millisecond
}

// Tap returns a store that calls see for each entry that s reads or pushes, before the election
// gets it. See must return at once, and may be called concurrently. The result has the abilities of
// s, except for the longest lease: it is for observers, whose lease no record has.
func Tap(s driver.Store, see func(key string, e driver.Entry, pushed bool)) driver.Store {
	return &tap{s, see}
}

type tap struct {
	driver.Store
	see func(key string, e driver.Entry, pushed bool)
}

// Abilities returns those of the store. Its pushes pass through the tap.
func (t *tap) Abilities() driver.Abilities {
	a := driver.AbilitiesOf(t.Store)
	if a.Bounded != nil {
		a.Bounded = AnyLease{a.Bounded}
	}
	if a.Watcher != nil {
		a.Watcher = tappedWatcher{a.Watcher, t.see}
	}
	return a
}

// AnyLease has the limits of a store but for the longest lease, which binds only candidates.
type AnyLease struct{ driver.Bounded }

// MaxLease returns the longest lease of the protocol.
func (AnyLease) MaxLease() time.Duration { return driver.MaxLease }

// Read reads the store, and calls see.
func (t *tap) Read(ctx context.Context, key string) (driver.Entry, error) {
	e, err := t.Store.Read(ctx, key)
	if err == nil {
		t.see(key, e, false)
	}
	return e, err
}

type tappedWatcher struct {
	inner driver.Watcher
	see   func(key string, e driver.Entry, pushed bool)
}

// Watch watches the store, and calls the see of Tap first.
func (t tappedWatcher) Watch(ctx context.Context, key string, see func(driver.Entry)) (stop func(), err error) {
	return t.inner.Watch(ctx, key, func(e driver.Entry) {
		if e.Lost == nil {
			t.see(key, e, true)
		}
		see(e)
	})
}
