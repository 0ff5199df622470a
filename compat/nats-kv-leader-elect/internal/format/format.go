// Package format translates between the values of candidates of nats-kv-leader-elect and the
// records of Tenure's candidates, in a bucket in which both take part.
package format

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/natskv"
)

// ErrUnshareable is that of package mixed.
var ErrUnshareable = errors.New("the bucket cannot be shared with candidates of nats-kv-leader-elect")

const (
	// predecessor begins the incarnation in the record that an old leader's value is read as.
	predecessor = "nats-kv:"
	// longestName is the limit of a record for an id, in bytes.
	longestName = 256
)

// errPredecessor is the error of a write that would change an old leader's value and keep it as the
// leader, such as a request.
var errPredecessor = errors.New("the leader is a candidate of nats-kv-leader-elect, which cannot be asked to hand over")

// format translates between the values of the two kinds of candidate, in a bucket with this TTL.
type format struct{ ttl time.Duration }

// wait returns how long candidates of Tenure wait for an old leader: as long as its value lasts.
// The old leader renews after three quarters of that. The last quarter is for its Update, which the
// client library gives up after 5 s.
func (f format) wait() time.Duration { return f.ttl }

// vacancy returns how long candidates of Tenure wait over a vacant record. An old leader finds out
// that its record is gone when it renews, so three quarters of the TTL are not enough. After the
// whole TTL the vacant record itself expires.
func (f format) vacancy() time.Duration { return f.ttl - f.ttl/8 }

func (f format) maxLease() time.Duration { return (f.ttl / leasesInTTL).Truncate(time.Millisecond) }

// fields are the fields of a record that matter here.
type fields struct {
	LeaderID    string `json:"leaderID"`
	Term        uint64 `json:"term"`
	LeaseMillis int64  `json:"leaseMillis"`
	Incarnation string `json:"incarnation"`
	Seq         uint64 `json:"seq"`
	Nonce       string `json:"nonce"`
	Released    bool   `json:"released,omitempty"`
}

// parse returns false unless this is a record of Tenure that is not malformed. Malformed records
// stay unchanged.
func parse(value []byte) (fields, bool) {
	var r fields
	if json.Unmarshal(value, &r) != nil {
		return fields{}, false
	}
	return r, r.Nonce != "" && r.LeaseMillis > 0 && r.LeaseMillis <= longestTTL.Milliseconds()
}

func (r fields) vacant() bool { return r.LeaderID == "" && !r.Released }

func (r fields) lease() time.Duration { return time.Duration(r.LeaseMillis) * time.Millisecond }

// encode cannot fail: there are only text and numbers.
func (r fields) encode() []byte {
	b, _ := json.Marshal(r)
	return b
}

// show translates a value that was read.
func (f format) show(value []byte, v driver.Version) []byte {
	if r, ok := parse(value); ok {
		return f.prolong(value, r)
	}
	if name, ok := nameIn(value); ok {
		return f.adopt(name, v)
	}
	return value
}

// prolong sets the lease of a vacant record to vacancy, so that the wait covers old leaders, too,
// and ends before the record expires. It is called for reads, since other members also write vacant
// records, and for writes. An election puts the longest lease that it has seen into a vacant
// record. Here that is an old leader's, the whole TTL, and a member without this translation would
// wait without end. A record with a lease longer than the TTL, which no member has here, stays
// unchanged.
func (f format) prolong(value []byte, r fields) []byte {
	if !r.vacant() || r.lease() > f.ttl {
		return value
	}
	r.LeaseMillis = millis(f.vacancy())
	return r.encode()
}

// adopt makes a record from an old leader's name. The nonce is the version, because an old leader
// writes the same value when it renews, and each renewal must be a new state.
func (f format) adopt(name string, v driver.Version) []byte {
	sum := sha256.Sum256([]byte(name))
	return fields{
		LeaderID: clip(name), LeaseMillis: millis(f.wait()), Incarnation: predecessor + hex.EncodeToString(sum[:16]), Nonce: string(v),
	}.encode()
}

// write translates a value to write. It reports whether the record is a release that is marked for
// old candidates.
//
// Over an absence it turns a release into a vacant record. The leader that releases saw its own
// record vanish while its lease was valid. But an old candidate may have led in between, may have
// lost its record in the same way, and may not know it yet. So candidates must wait.
func (f format) write(value []byte, overAbsence bool) (_ []byte, released bool, err error) {
	r, ok := parse(value)
	switch {
	case !ok:
		return value, false, nil
	case strings.HasPrefix(r.Incarnation, predecessor):
		return nil, false, errPredecessor
	case r.Released && overAbsence:
		r = fields{Term: r.Term, LeaseMillis: r.LeaseMillis, Seq: r.Seq, Nonce: r.Nonce}
		return f.prolong(r.encode(), r), false, nil
	case r.Released:
		return value, true, nil
	case r.LeaderID != "" && r.lease() > f.maxLease():
		return nil, false, fmt.Errorf("Migrating: the lease of %v is longer than a third of the bucket's TTL of %v: set Lease to "+
			"%v or less; only without candidates of nats-kv-leader-elect, and without Migrating, may it be longer", r.lease(), f.ttl, f.maxLease())
	}
	return f.prolong(value, r), false, nil
}

// nameIn returns the value as a name, if it can be one: text that is not JSON, or a number, such as
// a process id. Text that begins like a JSON object is another program's document, even if it is
// damaged.
func nameIn(value []byte) (string, bool) {
	if len(value) > driver.MaxValue || !utf8.Valid(value) || bytes.HasPrefix(bytes.TrimSpace(value), []byte("{")) {
		return "", false
	}
	var v any
	if json.Unmarshal(value, &v) == nil {
		if _, number := v.(float64); !number {
			return "", false
		}
	}
	return string(value), true
}

// clip shortens a name to the limit of a record.
func clip(name string) string {
	if len(name) <= longestName {
		return name
	}
	return strings.ToValidUTF8(name[:longestName], "")
}

// millis rounds up.
func millis(d time.Duration) int64 { return int64((d + time.Millisecond - 1) / time.Millisecond) }

const (
	// leasesInTTL: a record must outlive its lease also when renewals fail, and when the server's
	// clock, by which records expire, is set.
	leasesInTTL = 3
	// longestTTL is the longest possible lease, because an old leader is read as one whose lease is
	// the TTL.
	longestTTL = driver.MaxLease
)

// minLease is the shortest lease on NATS.
var minLease = new(natskv.Store).MinLease()

// Translator translates between the values in the bucket and the records that elections see.
type Translator struct{}

// Check returns an error that wraps ErrUnshareable if the bucket cannot be shared.
func (Translator) Check(ttl time.Duration) error {
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

// MaxLease returns a third of the TTL.
func (Translator) MaxLease(ttl time.Duration) time.Duration { return format{ttl}.maxLease() }

// Show translates a value that was read.
func (Translator) Show(ttl time.Duration, value []byte, version driver.Version) []byte {
	return format{ttl}.show(value, version)
}

// Write translates a value to write.
func (Translator) Write(ttl time.Duration, value []byte, overAbsence bool) (stored []byte, deleted bool, err error) {
	return format{ttl}.write(value, overAbsence)
}

// Inspect replaces the usual findings about the TTL, because old candidates need a TTL.
func (Translator) Inspect(b natskv.SharedBucket, lease time.Duration) []driver.Finding {
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
