package mixed

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
)

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
