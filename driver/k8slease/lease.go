package k8slease

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/tenure-go/tenure/driver"
)

const (
	// recordAnnotation holds the value of the cell, and hashAnnotation the hash of the value and
	// of the spec that was written with it.
	recordAnnotation = "tenure-go.github.io/record"
	hashAnnotation   = "tenure-go.github.io/spec-hash"
	// encoded begins a value that is not UTF-8, in base64. JSON would change such a value.
	encoded = "base64:"
)

// lease is a Lease object. It is never changed after it was made.
type lease struct {
	name, uid string
	// revision is the resourceVersion.
	revision    uint64
	annotations map[string]string
	// metadata has all fields of the metadata but those above, as the server sent them.
	metadata map[string]json.RawMessage
	spec     spec
}

// spec has the fields by which electors of client-go decide.
type spec struct {
	Holder      string    `json:"holderIdentity"`
	Seconds     int32     `json:"leaseDurationSeconds,omitempty"`
	Acquired    microTime `json:"acquireTime,omitzero"`
	Renewed     microTime `json:"renewTime,omitzero"`
	Transitions int32     `json:"leaseTransitions"`
}

// microTime is a time with microseconds, as the API server keeps it.
type microTime struct{ time.Time }

// MarshalJSON returns the form of the API server.
func (t microTime) MarshalJSON() ([]byte, error) {
	return []byte(t.UTC().Format(`"2006-01-02T15:04:05.000000Z07:00"`)), nil
}

// UnmarshalJSON reads a Lease.
func (l *lease) UnmarshalJSON(text []byte) error {
	var o struct {
		Metadata map[string]json.RawMessage `json:"metadata"`
		Spec     spec                       `json:"spec"`
	}
	if err := json.Unmarshal(text, &o); err != nil {
		return err
	}
	var revision string
	for field, into := range map[string]any{
		"name": &l.name, "uid": &l.uid, "resourceVersion": &revision, "annotations": &l.annotations,
	} {
		if raw, ok := o.Metadata[field]; ok {
			if err := json.Unmarshal(raw, into); err != nil {
				return fmt.Errorf("metadata.%s: %w", field, err)
			}
			delete(o.Metadata, field)
		}
	}
	delete(o.Metadata, "managedFields") // large, and the server keeps it
	l.metadata, l.spec = o.Metadata, o.Spec
	var err error
	l.revision, err = parseRevision(revision)
	return err
}

// parseRevision reads a resourceVersion.
func parseRevision(text string) (uint64, error) {
	revision, err := strconv.ParseUint(text, 10, 64)
	if err != nil || revision == 0 {
		return 0, fmt.Errorf("resourceVersion %q is not a positive number, as it is in Kubernetes", text)
	}
	return revision, nil
}

// version names the state of a Lease. The uid is a part of it, since another cluster counts its
// revisions itself.
func (l *lease) version() driver.Version {
	return driver.Version(strconv.FormatUint(l.revision, 10) + "@" + l.uid)
}

// value returns the record in the annotation if it was written together with the spec. Otherwise
// the spec alone counts, as for other electors. It returns nil if the Lease was never held.
func (l *lease) value() []byte {
	text, ok := l.annotations[recordAnnotation]
	value, err := decodeValue(text)
	if ok && err == nil && l.annotations[hashAnnotation] == l.spec.hash(value) {
		return value
	}
	return l.spec.foreign(value)
}

// with returns the Lease in which the value of a key replaces the present one.
func (l *lease) with(key string, value []byte, now time.Time) *lease {
	next := &lease{name: l.name, uid: l.uid, revision: l.revision, metadata: l.metadata, annotations: maps.Clone(l.annotations)}
	if next.annotations == nil {
		next.annotations = map[string]string{}
	}
	next.spec = l.spec.after(l.value(), value, now)
	if key != l.name {
		next.annotations[keyAnnotation] = key
	}
	next.annotations[recordAnnotation] = encodeValue(value)
	next.annotations[hashAnnotation] = next.spec.hash(value)
	return next
}

// MarshalJSON returns the body of a request that writes the Lease. The server refuses it unless the
// Lease has this uid and resourceVersion. Without a uid it creates the Lease.
func (l *lease) MarshalJSON() ([]byte, error) {
	metadata := map[string]any{"name": l.name, "annotations": l.annotations}
	for field, raw := range l.metadata {
		metadata[field] = raw
	}
	if l.uid != "" {
		metadata["uid"], metadata["resourceVersion"] = l.uid, strconv.FormatUint(l.revision, 10)
	}
	return json.Marshal(map[string]any{
		"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": l.spec,
	})
}

func encodeValue(value []byte) string {
	if text := string(value); utf8.ValidString(text) && !strings.HasPrefix(text, encoded) {
		return text
	}
	return encoded + base64.StdEncoding.EncodeToString(value)
}

func decodeValue(text string) ([]byte, error) {
	if rest, ok := strings.CutPrefix(text, encoded); ok {
		return base64.StdEncoding.DecodeString(rest)
	}
	return []byte(text), nil
}

// hash binds a value to the spec. It covers only the fields that other electors change, so a field
// that a later API server adds makes no Lease foreign.
func (s spec) hash(value []byte) string {
	h := sha256.New()
	fmt.Fprintf(h, "%q %d %d %d %d\n", s.Holder, s.Seconds, s.Acquired.UnixMicro(), s.Renewed.UnixMicro(), s.Transitions)
	h.Write(value)
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// record has the fields of an election's record that matter here.
type record struct {
	LeaderID    string    `json:"leaderID"`
	LastUpdated time.Time `json:"lastUpdated"`
	Term        uint64    `json:"term"`
	LeaseMillis int64     `json:"leaseMillis"`
	Incarnation string    `json:"incarnation"`
	Seq         uint64    `json:"seq"`
	Nonce       string    `json:"nonce"`
	Released    bool      `json:"released,omitempty"`
}

// parse returns false unless the value is a record that is not malformed.
func parse(value []byte) (record, bool) {
	var r record
	if json.Unmarshal(value, &r) != nil {
		return record{}, false
	}
	return r, r.Nonce != "" && r.LeaseMillis > 0 && r.LeaseMillis <= driver.MaxLease.Milliseconds()
}

func (r record) held() bool { return r.LeaderID != "" && !r.Released }

const (
	// The holders of Leases without a leader that other electors must not take. A name of an
	// election's member ends in _ and its incarnation.
	vacant     = "vacant_"
	unreadable = "unreadable_"
	// releasedSeconds is the duration in a released Lease. client-go has the same, since zero is
	// not valid.
	releasedSeconds = 1
)

// after returns the spec that says the same as a value of an election, to electors that know no
// records. It replaces s.
//
// The time of a renewal is that in the record, unless the whole second is then the same or earlier:
// electors of client-go read whole seconds, and would miss the renewal. A request to hand over
// copies the record, so it changes nothing.
func (s spec) after(last, value []byte, now time.Time) spec {
	next := spec{Transitions: s.Transitions, Renewed: micro(now)}
	r, ok := parse(value)
	switch {
	case !ok:
		next.Holder, next.Seconds = unreadable, seconds(driver.MaxLease.Milliseconds())
	case r.Released:
		next.Seconds, next.Acquired = releasedSeconds, next.Renewed
	case r.LeaderID == "":
		next.Holder, next.Seconds = vacant+r.Nonce, seconds(r.LeaseMillis)
	default:
		next.Holder, next.Seconds = r.LeaderID+"_"+r.Incarnation, seconds(r.LeaseMillis)
		if !r.LastUpdated.IsZero() {
			next.Renewed = micro(r.LastUpdated)
		}
		next.Acquired = s.Acquired
		before, _ := parse(last)
		switch {
		case s.Holder != next.Holder:
			next.Acquired = next.Renewed
			next.Transitions += min(1, math.MaxInt32-next.Transitions)
		case before.Nonce == r.Nonce:
			next.Renewed = s.Renewed
		case next.Renewed.Unix() <= s.Renewed.Unix():
			next.Renewed = microTime{s.Renewed.Truncate(time.Second).Add(time.Second)}
		}
	}
	return next
}

func micro(t time.Time) microTime { return microTime{t.UTC().Truncate(time.Microsecond)} }

// seconds rounds up: other electors wait for whole seconds.
func seconds(millis int64) int32 { return int32((millis + 999) / 1000) }

const (
	// elector begins the incarnation in the record that the Lease of another elector is read as.
	elector = "lease:"
	// longestName is the limit of a record for an id, in bytes.
	longestName = 256
)

// foreign makes a record from the spec of another elector, or of an operator. The annotation holds
// the last value of an election, if there was one. Each change of the spec is a new record, because
// electors renew by a change of the spec.
//
// An elector that releases a Lease says so by an empty holder and the shortest duration. After a
// leader of Tenure, that may also be an operator who edited the Lease while the leader trusts it.
// So members wait.
func (s spec) foreign(annotation []byte) []byte {
	last, _ := parse(annotation)
	r := record{LastUpdated: s.Renewed.Time, LeaseMillis: max(1, int64(s.Seconds)*1000), Nonce: s.hash(nil)}
	if last.held() {
		r.LeaseMillis = max(r.LeaseMillis, last.LeaseMillis)
	}
	switch {
	case r.LeaseMillis > driver.MaxLease.Milliseconds():
		return fmt.Appendf(nil, `{"holderIdentity":%q,"leaseDurationSeconds":%d}`, s.Holder, s.Seconds)
	case s.Holder != "":
		r.LeaderID, r.Incarnation = clip(s.Holder), elector+s.holderHash()
	case s.Renewed.IsZero() && len(annotation) == 0:
		return nil
	case s.Seconds != releasedSeconds || s.Renewed.IsZero() || last.held():
		r.LastUpdated, r.Seq = time.Time{}, 1
	default:
		r.LeaderID, r.Incarnation, r.Released, r.LastUpdated = "another elector", elector, true, time.Time{}
	}
	value, _ := json.Marshal(r) // cannot fail: there are only text and numbers
	return value
}

// isForeign reports whether a value is a record that foreign made, perhaps with a request.
func isForeign(value []byte) bool {
	r, ok := parse(value)
	return ok && strings.HasPrefix(r.Incarnation, elector)
}

func (s spec) holderHash() string {
	sum := sha256.Sum256([]byte(s.Holder))
	return hex.EncodeToString(sum[:16])
}

// clip shortens a name to the limit of a record.
func clip(name string) string {
	if len(name) <= longestName {
		return strings.ToValidUTF8(name, "?")
	}
	return strings.ToValidUTF8(name[:longestName], "")
}

// same reports whether the server keeps a Lease as it was written.
func (l *lease) same(as *lease) bool {
	return bytes.Equal(l.value(), as.value()) && l.spec.hash(nil) == as.spec.hash(nil) && l.owner() == as.owner()
}
