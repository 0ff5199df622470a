package s3lect

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/tenure-go/tenure/driver"
)

const (
	// predecessor begins the incarnation that a leader of S3lect's is read with.
	predecessor = "s3lect:"
	// vacant begins the leaderID of a record without a leader.
	vacant = "vacant"
	// maxName is the limit of a record for an id and an address, in bytes.
	maxName = 256
)

// errPredecessor comes from the attempt to change a lockfile of S3lect's and leave it S3lect's.
var errPredecessor = errors.New("the leader is a process of S3lect's, which cannot be asked for anything")

// format translates between a record as Tenure has it and one that S3lect understands too.
type format struct{ timeout, skew time.Duration }

// encode is for writing. Bytes that are no record of Tenure's are left alone.
func (f format) encode(value []byte, now time.Time) ([]byte, error) {
	d, ok := parse(value)
	if !ok || !d.tenures() || d.fields.LeaderID != "" && d.fields.Incarnation == "" {
		return value, nil
	}
	if strings.HasPrefix(d.fields.Incarnation, predecessor) {
		return nil, errPredecessor
	}
	id, updated := d.raw("leaderID"), d.fields.LastUpdated
	switch {
	case d.fields.Released:
		updated = time.Time{}
	case d.vacant() || updated.IsZero():
		updated = now.UTC().Add(f.ahead(&d)) // or it would look resigned
	default:
		updated = updated.Add(f.ahead(&d))
	}
	if d.vacant() {
		id = quote(vacant + "#" + d.fields.Nonce)
	} else {
		id = attach(id, d.suffix())
	}
	stamp, err := json.Marshal(updated)
	if err != nil {
		return nil, err
	}
	out := d.with(id, stamp)
	if len(out) > driver.MaxValue {
		return nil, fmt.Errorf("a record of %d bytes has %d as S3lect is to see it, more than %d", len(value), len(out), driver.MaxValue)
	}
	return out, nil
}

// decode is for reading. Bytes that are no record of either kind are left alone, and so is a record
// of a candidate without this translation.
func (f format) decode(value []byte, version driver.Version) []byte {
	d, ok := parse(value)
	switch {
	case !ok:
		return value
	case d.tenures():
		return f.undo(&d)
	case d.s3lects():
		return f.adopt(&d, version)
	}
	return value
}

// ahead is by how much lastUpdated must lie in the future, so that no process of S3lect's, by its
// own clock, finds the record out of date before its lease is over.
func (f format) ahead(d *document) time.Duration {
	lease := time.Duration(d.fields.LeaseMillis) * time.Millisecond
	return f.skew + max(0, lease-f.timeout)
}

func (f format) undo(d *document) []byte {
	if d.fields.Incarnation == "" {
		if d.fields.LeaderID != vacant+"#"+d.fields.Nonce {
			return d.text
		}
		return d.with(quote(""), zeroTime)
	}
	id, ok := detach(d.raw("leaderID"), d.suffix())
	if !ok {
		return d.text
	}
	updated := d.fields.LastUpdated
	if !updated.IsZero() {
		updated = updated.Add(-f.ahead(d))
	}
	stamp, err := json.Marshal(updated)
	if err != nil {
		return d.text
	}
	return d.with(id, stamp)
}

// adopt makes a record out of a lockfile of S3lect's. Each of its versions is a new state, because
// a leader of S3lect's changes nothing but the time when it renews.
func (f format) adopt(d *document, version driver.Version) []byte {
	out, err := json.Marshal(struct {
		fields
		Term uint64 `json:"term"`
		Seq  uint64 `json:"seq"`
	}{fields: fields{
		LeaderID: clip(cmp.Or(d.fields.LeaderID, "s3lect")), LeaderAddr: clip(d.fields.LeaderAddr),
		LastUpdated: d.fields.LastUpdated,
		LeaseMillis: int64((f.timeout + time.Millisecond - 1) / time.Millisecond),
		Incarnation: predecessor + hash(d.fields.LeaderID), Nonce: hash(string(version)),
		Released: d.fields.LastUpdated.IsZero() || d.fields.LeaderID == "",
	}})
	if err != nil {
		return d.text
	}
	return out
}

// tenures reports whether this is a record of Tenure's that is not broken.
func (d *document) tenures() bool {
	lease := d.fields.LeaseMillis
	return d.has("leaderID") && d.has("lastUpdated") && d.fields.Nonce != "" &&
		lease > 0 && lease <= maxTimeout.Milliseconds()
}

// s3lects reports whether S3lect wrote this.
func (d *document) s3lects() bool {
	return d.has("leaderID") && d.has("lastUpdated") && !d.has("leaseMillis") && !d.has("incarnation")
}

func (d *document) vacant() bool { return d.fields.LeaderID == "" && d.fields.Incarnation == "" }

// suffix is the end of a leader's id, as JSON text.
func (d *document) suffix() []byte {
	quoted := quote("#" + d.fields.Incarnation)
	return quoted[1 : len(quoted)-1]
}

// attach puts a suffix into a JSON string, and detach takes it out: as text, so that the rest keeps
// its escapes.
func attach(quoted, suffix []byte) []byte {
	out := append([]byte{}, quoted[:len(quoted)-1]...)
	return append(append(out, suffix...), '"')
}

func detach(quoted, suffix []byte) ([]byte, bool) {
	body, ok := bytes.CutSuffix(quoted[:len(quoted)-1], suffix)
	return append(append([]byte{}, body...), '"'), ok
}

// zeroTime is the lastUpdated of a vacant record.
var zeroTime = []byte(`"0001-01-01T00:00:00Z"`)

// quote cannot fail: every string can be written as JSON.
func quote(s string) []byte {
	b, _ := json.Marshal(s)
	return b
}

// hash is 128 bits of a hash, in 32 digits.
func hash(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:16])
}

// clip shortens a name to the limit of a record.
func clip(s string) string {
	if len(s) <= maxName {
		return s
	}
	return strings.ToValidUTF8(s[:maxName], "")
}
