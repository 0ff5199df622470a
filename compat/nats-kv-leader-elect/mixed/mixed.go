// Package mixed lets candidates of nats-kv-leader-elect and of Tenure take part in the same
// elections. Use it only while the former are replaced by the latter, one by one.
//
//	store, err := natskv.Open(ctx, js, "ELECTIONS", mixed.Migrating())
//
// Package election of this module has an option with the same effect.
package mixed

import (
	"github.com/tenure-go/tenure/compat/nats-kv-leader-elect/internal/format"
	"github.com/tenure-go/tenure/driver/natskv"
)

// Migrating lets candidates of nats-kv-leader-elect, here called old candidates, take part in the
// same elections, under the same keys, while they are replaced one by one. Every candidate of
// Tenure must have this option for as long as an old candidate may run.
// docs/nats-kv-leader-elect.md has the procedure, and the guarantees during it.
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
func Migrating() natskv.Option { return natskv.Translating(format.Translator{}) }

// ErrUnshareable means that Migrating cannot be used in this bucket. The text gives the reason.
var ErrUnshareable = format.ErrUnshareable
