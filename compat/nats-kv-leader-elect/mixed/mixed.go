// Package mixed lets candidates of nats-kv-leader-elect and of Tenure take part in the same
// elections. Use it only while the former are replaced by the latter, one by one.
//
//	store, err := natskv.Open(ctx, js, "ELECTIONS", mixed.Migrating())
//
// Package election of this module has an option with the same effect.
package mixed

import (
	"errors"
	"fmt"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/natskv"
)

// Migrating lets candidates of nats-kv-leader-elect, here called old candidates, take part in the
// same elections, under the same keys, while they are replaced one by one. Every candidate of
// Tenure must have this option for as long as an old candidate may run. docs/nats.md has the
// procedure, and the guarantees during it.
//
// An old candidate creates the key when it is absent or deleted. While it leads, it updates the key
// every three quarters of the bucket's TTL, under the condition of the key's last sequence. It
// stops leading when an update fails. The value is the candidate's name. So in this store:
//
//   - A name is a value that is text and not JSON, except that it may be a number. It is read as
//     the record of a leader with the TTL as its lease and the term 0. Each write of the name is a
//     renewal. That leader cannot be asked to hand over. JSON of another program stays foreign:
//     nothing overwrites it, and no candidate leads.
//   - A released record is marked as deleted, so old candidates do not wait for it either. For
//     candidates of Tenure it stays a released record.
//   - After a key was deleted, purged or expired, no candidate of Tenure leads before it has been
//     vacant for seven eighths of the TTL: for three quarters of the TTL an old leader may not yet
//     know that its key is gone. A vacant record is not marked as deleted, so old candidates do not
//     create the key.
//   - A leader's record with a lease above a third of the TTL is not written, because old
//     candidates take over expired keys; see natskv.Store.MaxLease.
//
// The bucket must have a TTL of 1.5 s to 1 h. Otherwise natskv.Open returns ErrUnshareable; over a
// handle the first call does. Do not change the TTL while both kinds of candidate run.
//
// Over a handle (natskv.FromKeyValue, natskv.FromLegacyKeyValue) nothing can be marked, because no
// handle publishes headers. Then only candidates of Tenure see a release. Old candidates wait until
// the released record expires, as they always waited for each other's records.
func Migrating() natskv.Option { return natskv.Translating(translator{}) }

// ErrUnshareable means that Migrating cannot be used in this bucket. The text gives the reason.
var ErrUnshareable = errors.New("the bucket cannot be shared with candidates of nats-kv-leader-elect")

const (
	// leasesInTTL: a record must outlive its lease also when renewals fail, and when the server's
	// clock, by which records expire, is set.
	leasesInTTL = 3
	// longestTTL is the longest possible lease, because an old leader is read as one whose lease is
	// the TTL.
	longestTTL = tenure.MaxLease
)

// minLease is the shortest lease on NATS.
var minLease = new(natskv.Store).MinLease()

// translator translates between the values in the bucket and the records that elections see.
type translator struct{}

func (translator) Check(ttl time.Duration) error {
	switch {
	case ttl == 0:
		return fmt.Errorf("%w: it has no TTL, which they need: leave out Migrating, or look whether this is their bucket",
			ErrUnshareable)
	case ttl < leasesInTTL*minLease || ttl > longestTTL:
		return fmt.Errorf("%w: its TTL is %v; it must be from %v, so that a lease fits in three times, to %v, which is as long "+
			"as any lease", ErrUnshareable, ttl, leasesInTTL*minLease, longestTTL)
	}
	return nil
}

func (translator) MaxLease(ttl time.Duration) time.Duration { return format{ttl}.maxLease() }

func (translator) Show(ttl time.Duration, value []byte, version driver.Version) []byte {
	return format{ttl}.show(value, version)
}

func (translator) Write(ttl time.Duration, value []byte, overAbsence bool) (stored []byte, deleted bool, err error) {
	return format{ttl}.write(value, overAbsence)
}

// Inspect replaces the usual findings about the TTL, because old candidates need a TTL.
func (translator) Inspect(b natskv.SharedBucket, lease time.Duration) []driver.Finding {
	const setting = "migrating"
	found := []driver.Finding{{
		Severity: driver.Warning, Setting: setting,
		Problem: "while candidates of nats-kv-leader-elect take part, a deleted record lets one of them lead " +
			"beside a leader that has not heard of it, and one that cannot reach the server does not stop",
		Remedy: "leave out Migrating once the last old candidate is gone",
	}}
	switch most := b.TTL / leasesInTTL; {
	case b.TTL == 0:
		found = append(found, driver.Finding{
			Severity: driver.Unsafe, Setting: "ttl",
			Problem: "without a TTL no candidate of nats-kv-leader-elect takes over after a crash",
			Remedy:  "set the TTL again while old candidates run, or leave out Migrating if none is left",
		})
	case lease > most:
		found = append(found, driver.Finding{
			Severity: driver.Unsafe, Setting: "ttl",
			Problem: fmt.Sprintf("a lease of %v is longer than a third of the TTL of %v, by which "+
				"old candidates take over: nobody can lead with it", lease, b.TTL),
			Remedy: fmt.Sprintf("set the lease to %v or less while they take part", most.Truncate(time.Millisecond)),
		})
	}
	if !b.Marks {
		found = append(found, driver.Finding{
			Severity: driver.Advice, Setting: setting,
			Problem: "over a handle a release cannot be marked for candidates of " +
				"nats-kv-leader-elect: they wait until the released record expires",
			Remedy: "use natskv.Open",
		})
	}
	if b.MarkerTTL > 0 {
		found = append(found, driver.Finding{
			Severity: driver.Warning, Setting: "limit_marker_ttl",
			Problem: "candidates of nats-kv-leader-elect with an older client library " +
				"take the marker of an expired key for a leader",
			Remedy: "make sure that theirs knows such markers, or nats kv edit " + b.Name + " --marker-ttl 0",
		})
	}
	return found
}
