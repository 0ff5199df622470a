package s3lect

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/tenure-go/tenure/driver"
)

// maxTimeout is the longest possible lease: an S3lect lockfile is read as a record with a lease of
// LeaderTimeout.
const maxTimeout = time.Hour

// LegacyConfig describes the S3lect processes that share a lockfile. It must be the same in all
// candidates.
type LegacyConfig struct {
	// LeaderTimeout is the setting of the S3lect processes: how long a leader may be silent before
	// they take over. From 1 ms to 1 h; zero is S3lect's default, 15 s.
	LeaderTimeout time.Duration
	// MaxSkew is how far the time of day on the machine of any candidate may differ from that of
	// any S3lect process. It must be shorter than LeaderTimeout: with a larger difference S3lect
	// processes take over from live leaders. Zero is a third of LeaderTimeout. After a crash S3lect
	// processes wait longer, by up to twice this time.
	MaxSkew time.Duration
}

func (c LegacyConfig) withDefaults() LegacyConfig {
	c.LeaderTimeout = cmp.Or(c.LeaderTimeout, defaultTimeout)
	c.MaxSkew = cmp.Or(c.MaxSkew, c.LeaderTimeout/3)
	return c
}

func (c LegacyConfig) validate() error {
	var problems []error
	if c.LeaderTimeout < time.Millisecond || c.LeaderTimeout > maxTimeout {
		problems = append(problems, fmt.Errorf("LeaderTimeout is %v; it must be from 1ms to %v", c.LeaderTimeout, maxTimeout))
	}
	if c.MaxSkew < 0 || c.MaxSkew >= c.LeaderTimeout {
		problems = append(problems, fmt.Errorf("MaxSkew is %v; it must be at least 0 and below LeaderTimeout, which is %v",
			c.MaxSkew, c.LeaderTimeout))
	}
	return errors.Join(problems...)
}

// Legacy returns the store for candidates that share their election with S3lect processes. Use it
// only during a rolling migration. It translates values and does nothing else:
//
//   - A record of Tenure is written so that S3lect processes see a leader with another ID than
//     theirs, and wait until its lease is over: its leaderID is "ID#incarnation", and its
//     lastUpdated lies in the future, by MaxSkew plus the time by which the lease exceeds
//     LeaderTimeout. A vacant record has the leader "vacant#nonce". A released record has the zero
//     time, S3lect's sign of resignation. All other bytes stay the same, and a read undoes the
//     translation.
//   - An S3lect lockfile is read as a record of term 0. Its incarnation is "s3lect:" and a hash of
//     its leaderID, and its lease is LeaderTimeout. If its time is zero, the record is released.
//   - All other bytes stay unchanged.
//
// The result has the abilities of the store, and its Inspect adds one finding. Legacy
// returns an error if the store is nil, or one that names all problems of the config.
//
// S3lect writes no term, and drops fields that it does not know. So tokens keep growing after
// S3lect has led only over a store with a Floor, such as package s3object; see FromStorage for
// stores without. Do not delete the lockfile while both kinds of process run: without a lockfile
// S3lect takes over at once, even if another process leads.
//
// An S3lect process cannot be asked to hand over: HandOver returns an error while one leads. The
// translation lengthens a record by up to 160 bytes. If it is longer than driver.MaxValue bytes
// then, the write fails and nothing is sent.
func Legacy(store driver.Store, cfg LegacyConfig) (driver.Store, error) {
	if store == nil {
		return nil, errors.New("s3lect: the store is nil")
	}
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, fmt.Errorf("s3lect: LegacyConfig: %w", err)
	}
	return legacyAt(store, cfg, time.Now), nil
}

func legacyAt(store driver.Store, cfg LegacyConfig, now func() time.Time) driver.Store {
	return &legacy{inner: store, format: format{timeout: cfg.LeaderTimeout, skew: cfg.MaxSkew}, now: now}
}

type legacy struct {
	inner  driver.Store
	format format
	now    func() time.Time
}

func (l *legacy) Read(ctx context.Context, key string) (driver.Entry, error) {
	e, err := l.inner.Read(ctx, key)
	if err != nil {
		return driver.Entry{}, err
	}
	return l.translate(e), nil
}

func (l *legacy) translate(e driver.Entry) driver.Entry {
	if !e.Absent() {
		e.Value = l.format.decode(e.Value, e.Version)
	}
	return e
}

func (l *legacy) CompareAndSwap(ctx context.Context, key string, prev driver.Version, value []byte) (driver.Version, error) {
	own, err := l.format.encode(bytes.Clone(value), l.now())
	if err != nil {
		return "", fmt.Errorf("s3lect: %s: %w", key, err)
	}
	return l.inner.CompareAndSwap(ctx, key, prev, own)
}

// Abilities returns those of the store. Pushes are translated, and may not reach every member:
// S3lect processes do not receive them. Inspect adds a finding.
func (l *legacy) Abilities() driver.Abilities {
	a := driver.AbilitiesOf(l.inner)
	a.Inspector = legacyInspector{driver.AbilitiesOf(l.inner), l.format.skew}
	if a.Watcher != nil {
		w := legacyWatcher{l, a.Watcher}
		a.Watcher, a.Peers = w, legacyPeers{w, a.Peers}
	}
	return a
}

type legacyWatcher struct {
	*legacy
	inner driver.Watcher
}

func (w legacyWatcher) Watch(ctx context.Context, key string, see func(driver.Entry)) (stop func(), err error) {
	return w.inner.Watch(ctx, key, func(e driver.Entry) { see(w.translate(e)) })
}

// legacyPeers marks pushes that S3lect processes do not receive.
type legacyPeers struct {
	legacyWatcher
	peers driver.Peers // nil: the store itself pushes
}

// Incarnation returns a name of the store's peers, or none.
func (p legacyPeers) Incarnation(left func(term uint64) time.Duration) string {
	if p.peers == nil {
		return ""
	}
	return p.peers.Incarnation(left)
}

type legacyInspector struct {
	driver.Inspector
	skew time.Duration
}

// Inspect adds a finding that legacy mode is on, since it should end.
func (i legacyInspector) Inspect(ctx context.Context, lease time.Duration) ([]driver.Finding, error) {
	findings, err := i.Inspector.Inspect(ctx, lease)
	if err != nil {
		return nil, err
	}
	return append(findings, driver.Finding{
		Severity: driver.Warning,
		Setting:  "legacy",
		Problem:  "while an S3lect process takes part, there can be two leaders if clocks are further apart than " + i.skew.String(),
		Remedy:   "leave out s3lect.Legacy once the last S3lect process is gone",
	}), nil
}

const (
	// predecessor begins the incarnation in the record that an S3lect lockfile is read as.
	predecessor = "s3lect:"
	// vacant begins the leaderID of a record without a leader.
	vacant = "vacant"
	// maxName is the limit of a record for an id and an address, in bytes.
	maxName = 256
)

// errPredecessor is the error of a write that would change an S3lect lockfile and keep its leader,
// such as a request.
var errPredecessor = errors.New("the leader is an S3lect process, which cannot be asked to hand over")

// format translates between Tenure's record and a form of it that S3lect also understands.
type format struct{ timeout, skew time.Duration }

// encode translates a value to write. It returns bytes that are not a record of Tenure unchanged.
func (f format) encode(value []byte, now time.Time) ([]byte, error) {
	d, ok := parse(value)
	if !ok || !d.isRecord() || d.fields.LeaderID != "" && d.fields.Incarnation == "" {
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
		updated = now.UTC().Add(f.ahead(&d)) // with the zero time it would look released
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
		return nil, fmt.Errorf("a record of %d bytes has %d bytes in the form for S3lect, more than %d", len(value), len(out), driver.MaxValue)
	}
	return out, nil
}

// decode translates a value that was read. It returns bytes that are a record of neither kind
// unchanged, and so a record that was written without this translation.
func (f format) decode(value []byte, version driver.Version) []byte {
	d, ok := parse(value)
	switch {
	case !ok:
		return value
	case d.isRecord():
		return f.undo(&d)
	case d.isLockfile():
		return f.adopt(&d, version)
	}
	return value
}

// ahead returns how far lastUpdated must lie in the future, so that no S3lect process, by its own
// clock, takes over before the lease is over.
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

// adopt makes a record from an S3lect lockfile. The nonce is made from the version, because an
// S3lect leader changes only the time when it renews, and each renewal must be a new state.
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

// isRecord reports whether this is a record of Tenure that is not malformed.
func (d *document) isRecord() bool {
	lease := d.fields.LeaseMillis
	return d.has("leaderID") && d.has("lastUpdated") && d.fields.Nonce != "" &&
		lease > 0 && lease <= maxTimeout.Milliseconds()
}

// isLockfile reports whether S3lect wrote this.
func (d *document) isLockfile() bool {
	return d.has("leaderID") && d.has("lastUpdated") && !d.has("leaseMillis") && !d.has("incarnation")
}

func (d *document) vacant() bool { return d.fields.LeaderID == "" && d.fields.Incarnation == "" }

// suffix returns the end of a leader's id in the lockfile, as JSON text.
func (d *document) suffix() []byte {
	quoted := quote("#" + d.fields.Incarnation)
	return quoted[1 : len(quoted)-1]
}

// attach appends a suffix to a JSON string, and detach removes it. Both work on the text, so that
// the rest keeps its escapes.
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

// hash returns 128 bits of a hash, in 32 hexadecimal digits.
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

// document is a JSON object as text, with the fields that are used here. Values are replaced in the
// text, so that all other bytes stay the same.
type document struct {
	text   []byte
	places map[string]place
	fields fields
}

// place is where the value of a field is in the text.
type place struct{ from, to int }

type fields struct {
	LeaderID    string    `json:"leaderID"`
	LeaderAddr  string    `json:"leaderAddr"`
	LastUpdated time.Time `json:"lastUpdated"`
	LeaseMillis int64     `json:"leaseMillis"`
	Incarnation string    `json:"incarnation"`
	Nonce       string    `json:"nonce"`
	Released    bool      `json:"released"`
}

// parse returns false unless the text is a JSON object. The fields in it, as far as they are there,
// must have the right types.
func parse(text []byte) (document, bool) {
	d := document{text: text, places: map[string]place{}}
	if json.Unmarshal(text, &d.fields) != nil {
		return document{}, false
	}
	dec := json.NewDecoder(bytes.NewReader(text))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return document{}, false
	}
	for dec.More() {
		name, err := dec.Token()
		if err != nil {
			return document{}, false
		}
		var raw json.RawMessage
		if dec.Decode(&raw) != nil {
			return document{}, false
		}
		to := int(dec.InputOffset())
		// of several fields with one name the last one counts
		d.places[name.(string)] = place{to - len(raw), to}
	}
	return d, true
}

func (d *document) has(name string) bool {
	_, ok := d.places[name]
	return ok
}

// raw returns the text of a field that is in the document.
func (d *document) raw(name string) []byte {
	p := d.places[name]
	return d.text[p.from:p.to]
}

// with returns the text with other values for leaderID and lastUpdated, which must be in the
// document.
func (d *document) with(leaderID, lastUpdated []byte) []byte {
	id, updated := d.places["leaderID"], d.places["lastUpdated"]
	if id.from < updated.from {
		return splice(splice(d.text, updated, lastUpdated), id, leaderID)
	}
	return splice(splice(d.text, id, leaderID), updated, lastUpdated)
}

func splice(text []byte, p place, by []byte) []byte {
	out := make([]byte, 0, len(text)+len(by))
	out = append(out, text[:p.from]...)
	out = append(out, by...)
	return append(out, text[p.to:]...)
}
