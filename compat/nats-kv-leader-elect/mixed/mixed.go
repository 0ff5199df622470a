// Package mixed lets candidates of nats-kv-leader-elect and of Tenure take part in the same
// elections, while the ones are replaced by the others.
//
//	store, err := natskv.Open(ctx, js, "ELECTIONS", mixed.Migrating())
//
// Package election of this module has the same as an option of its own.
package mixed

import (
	"errors"
	"fmt"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/natskv"
)

// Migrating lets candidates of nats-kv-leader-elect take part in the same elections, on the same
// keys, while they are replaced one by one, and no longer. Every candidate of Tenure must have it
// from before the first until after the last of them runs. docs/nats.md has the procedure, and the
// guarantees during it.
//
// Their rules are: Create the key when it is absent or deleted, Update it with its last sequence
// each three quarters of the bucket's TTL while leading, stop leading when an Update fails; the
// value is the candidate's name. So for this store
//
//   - a value that is a name, which is text and not JSON (a number will do), is a leader that is
//     waited out for the TTL. Each of its writes is a new state. It has the term 0, cannot be asked
//     to hand over, and is never renewed. JSON of another program stays foreign: nothing overwrites
//     it, and nobody leads;
//   - a released record is marked as deleted, which ends their waiting too. For candidates of
//     Tenure it stays a released record;
//   - nobody leads before a key that was deleted, purged or expired has been vacant for seven
//     eighths of the TTL, because one of them may lead there for three quarters and not know. A
//     vacant record is not marked, so that they stay away;
//   - a lease longer than a third of the TTL is refused when a leader's record is to be written,
//     since they take over expired keys; see natskv.Store.MaxLease.
//
// The bucket must have a TTL, of 1.5 s to 1 h, as nats-kv-leader-elect needs one too. natskv.Open
// returns ErrUnshareable otherwise; over a handle the first call does. It must not be changed while
// both kinds run.
//
// Over a handle (natskv.FromKeyValue, natskv.FromLegacyKeyValue) nothing can be marked, because no
// handle publishes headers. Then only candidates of Tenure see a release; the others wait for the
// released record to expire, as they always waited for one another's.
func Migrating() natskv.Option { return natskv.Translating(translator{}) }

// ErrUnshareable says that Migrating makes no sense in this bucket, and why.
var ErrUnshareable = errors.New("the bucket cannot be shared with candidates of nats-kv-leader-elect")

const (
	// leasesInTTL: a record must outlive its lease also when renewals fail, and when the server's
	// clock, by which records expire, is set.
	leasesInTTL = 3
	// longestTTL is the longest lease there is, which a leader of the old kind is given.
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
