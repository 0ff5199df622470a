package natskv

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/abandon"
	"github.com/tenure-go/tenure/driver/natskv/internal/identity"
)

// roomForHeaders is the room that a limit on messages must leave beside the value: the server
// counts our headers, too.
const roomForHeaders = 512

// roomForElections is the room that a bucket must have free, or it will soon refuse records: two of
// the longest.
const roomForElections = 2 * (driver.MaxValue + roomForHeaders)

// durable is the first release in which a replicated stream does not lose acknowledged writes in
// ordinary restarts.
var durable = serverVersion{2, 12, 3}

// survey is the input of an inspection.
type survey struct {
	bucket     string
	info       streamInfo
	server     string // its release; "" if not known
	maxPayload int64  // the longest message in bytes that the server takes; 0 if not known
	others     []identity.Sighting
	translator Translator // nil: only candidates of Tenure take part
	marks      bool       // a value can be marked as deleted for the others
}

// Inspect checks the bucket's settings and the release of the connected server, for elections with
// leases up to the one given. It also checks whether all URLs that the connection was given lead to
// this very bucket. It makes one request, and one over a new connection for each further URL, which
// take at most 2 s together. It changes nothing. It does not check settings that a server does not
// show, such as sync_interval. A store over a handle checks neither the release nor the URLs.
// Errors are as for Read.
func (s *Store) Inspect(ctx context.Context, lease time.Duration) ([]driver.Finding, error) {
	seen, err := abandon.Run(ctx, s.calls, func() (survey, error) { return s.cells.survey(ctx) }, abandon.NoUndo)
	if err != nil {
		return nil, fmt.Errorf("natskv: inspect bucket %s: %w", s.cells.bucket(), err)
	}
	return inspect(seen, lease), nil
}

func inspect(s survey, lease time.Duration) []driver.Finding {
	var all []driver.Finding
	for _, look := range []func(survey, time.Duration) []driver.Finding{
		atServers, atReplicas, atStorage, atSequences, atTTL, atMarkers, atSizes, atLimits, atOrigin, atWritability, atHistory, atRelease,
	} {
		all = append(all, look(s, lease)...)
	}
	return all
}

// none and one keep the checks short.
var none []driver.Finding

func one(severity driver.Severity, setting, problem, remedy string) []driver.Finding {
	return []driver.Finding{{Severity: severity, Setting: setting, Problem: problem, Remedy: remedy}}
}

// edit returns the command that changes a setting of the bucket. The nats command has no other way
// for most of them.
func (s survey) edit(flags string) string { return fmt.Sprintf("nats kv edit %s %s", s.bucket, flags) }

func (s survey) editStream(flags string) string {
	return fmt.Sprintf("nats stream edit KV_%s %s", s.bucket, flags)
}

// recreation returns the commands for settings that cannot be changed.
func (s survey) recreation(flags string) string {
	return fmt.Sprintf("stop all candidates for one lease, then nats kv del %s and nats kv add %s --history 1 --storage file%s",
		s.bucket, s.bucket, flags)
}

func atReplicas(s survey, _ time.Duration) []driver.Finding {
	switch n := s.info.Config.Replicas; {
	case n >= 3:
		return none
	case n == 2:
		return one(driver.Warning, "replicas", "the loss of either server of the two stops all elections",
			s.edit("--replicas 3"))
	case s.info.Cluster.Name != "":
		return one(driver.Warning, "replicas", "the loss of one server stops all elections, though there is a cluster",
			s.edit("--replicas 3"))
	}
	return one(driver.Advice, "replicas", "no leader can be elected or renewed while the one server is down",
		"run a cluster of three servers, then "+s.edit("--replicas 3"))
}

// atStorage reports a single memory replica as unsafe although an empty memory stream is never
// taken for a fresh one: terms begin again at 1, so a resource would refuse the new leader and obey
// the old.
func atStorage(s survey, _ time.Duration) []driver.Finding {
	switch c := s.info.Config; {
	case c.Storage == "memory" && c.Replicas < 3:
		return one(driver.Unsafe, "storage",
			"a restart of the server forgets all records and terms: a new leader gets a lower term than the old one had",
			s.recreation(""))
	case c.Storage == "memory":
		return one(driver.Warning, "storage",
			"a restart of all servers forgets all records and terms: a new leader gets a lower term than the old one had",
			s.recreation(fmt.Sprintf(" --replicas %d", c.Replicas)))
	case c.PersistMode == "async":
		return one(driver.Warning, "persist_mode",
			"a crash of the server takes back writes that it acknowledged, and terms with them", s.recreation(""))
	}
	return none
}

// atTTL demands three leases because a server applies the TTL by its wall clock, which may step.
func atTTL(s survey, lease time.Duration) []driver.Finding {
	ttl := s.info.Config.MaxAge
	switch {
	case s.translator != nil:
		return s.translator.Inspect(SharedBucket{
			Name: s.bucket, TTL: ttl, MarkerTTL: s.info.Config.MarkerTTL, Marks: s.marks,
		}, lease)
	case ttl == 0:
		return none
	case ttl < lease:
		return one(driver.Unsafe, "ttl", fmt.Sprintf("a record expires after %v, within the lease of %v: it vanishes under a "+
			"leader, and no candidate ever sees one for a whole lease", ttl, lease), s.edit("--ttl "+short(3*lease)))
	case ttl < 3*lease:
		return one(driver.Warning, "ttl", fmt.Sprintf("a record expires after %v by the server's clock; if that clock steps, or "+
			"if renewals fail for a while, the record vanishes under a leader with a lease of %v", ttl, lease), s.edit("--ttl "+short(3*lease)))
	}
	return one(driver.Advice, "ttl", fmt.Sprintf("a record that nobody renews is removed after %v; elections do not need "+
		"this and are not faster by it: the next election after a removal takes a lease longer", ttl), s.edit("--ttl 0"))
}

// short formats a duration for the nats command.
func short(d time.Duration) string { return fmt.Sprintf("%ds", (d+time.Second-1)/time.Second) }

func atMarkers(s survey, _ time.Duration) []driver.Finding {
	if s.info.Config.MaxAge == 0 || s.info.Config.MarkerTTL > 0 || s.translator != nil {
		return none
	}
	return one(driver.Advice, "limit_marker_ttl", "nobody is told when a record expires; candidates find out by polling",
		s.edit("--marker-ttl 2h")+" (server 2.11 or newer)")
}

func atSizes(s survey, _ time.Duration) []driver.Finding {
	const need = driver.MaxValue + roomForHeaders
	var found []driver.Finding
	if size := s.info.Config.MaxMsgSize; size > 0 && size < need {
		found = one(driver.Warning, "max_value_size", fmt.Sprintf("a record with its headers may take %d bytes, the bucket "+
			"takes %d: a leader with more metadata cannot renew", need, size), s.edit("--max-value-size 8192"))
	}
	if s.maxPayload > 0 && s.maxPayload < need {
		found = append(found, one(driver.Warning, "max_payload", fmt.Sprintf("a record with its headers may take %d bytes, the "+
			"server takes %d: a leader with more metadata cannot renew", need, s.maxPayload),
			"set max_payload: 8KB or more in the server's configuration")...)
	}
	return found
}

func atLimits(s survey, _ time.Duration) []driver.Finding {
	c := s.info.Config
	var found []driver.Finding
	if c.Discard == "new" && c.DiscardNewPerSubject {
		found = one(driver.Unsafe, "discard_new_per_subject", "a key that has its full history takes no more writes: no leader "+
			"can renew", s.editStream("--no-discard-per-subject"))
	}
	if c.MaxBytes > 0 || c.MaxMsgs > 0 {
		found = append(found, full(s)...)
	}
	return found
}

func full(s survey) []driver.Finding {
	if s.info.Config.Discard != "new" {
		return one(driver.Unsafe, "discard", "a full bucket makes room by removing its oldest records, which may be those of "+
			"live leaders", s.editStream("--discard new"))
	}
	if c := s.info.Config; c.MaxBytes > 0 && c.MaxBytes-int64(s.info.State.Bytes) < roomForElections {
		return one(driver.Warning, "max_bytes", fmt.Sprintf("%d of %d bytes of the bucket are in use, which leaves no room for two long records: "+
			"without room for a record no candidate can be elected or renew", s.info.State.Bytes, c.MaxBytes), s.edit("--max-bucket-size=-1")+", or remove what needs the room")
	}
	if c := s.info.Config; c.MaxMsgs > 0 && c.MaxMsgs <= int64(s.info.State.Messages) {
		return one(driver.Warning, "max_msgs", fmt.Sprintf("%d of %d messages of the stream are in use: "+
			"no key can be added", s.info.State.Messages, c.MaxMsgs), s.editStream("--max-msgs=-1")+", or remove what needs the room")
	}
	return one(driver.Advice, "max_bytes", "a full bucket takes no new key, and no record that is longer than before: other data in it can keep "+
		"elections from starting", "keep elections in a bucket of their own, or "+s.edit("--max-bucket-size=-1"))
}

func atOrigin(s survey, _ time.Duration) []driver.Finding {
	switch c := s.info.Config; {
	case c.Mirror != nil:
		return one(driver.Unsafe, "mirror", "the bucket is a copy of "+c.Mirror.Name+", and lags behind: only the original "+
			"decides", "open the original bucket")
	case len(c.Sources) > 0:
		return one(driver.Unsafe, "sources", "records are copied in from "+c.Sources[0].Name+" without compare-and-swap, and overwrite "+
			"those of live leaders", s.recreation(""))
	case len(c.Transform) > 0:
		return one(driver.Unsafe, "subject_transform", "keys are stored under other names than they are written to, so nobody "+
			"finds them", s.recreation(""))
	}
	return none
}

func atWritability(s survey, _ time.Duration) []driver.Finding {
	switch c := s.info.Config; {
	case c.Sealed:
		return one(driver.Unsafe, "sealed", "the stream takes no writes any more, and cannot be unsealed", s.recreation(""))
	case c.NoAck:
		return one(driver.Unsafe, "no_ack", "writes are not acknowledged, so no candidate ever learns that it leads",
			s.editStream("--ack"))
	case c.Retention != "" && c.Retention != "limits":
		return one(driver.Unsafe, "retention", "a record is removed as soon as a consumer has received it, while its leader leads",
			s.recreation(""))
	}
	return none
}

func atHistory(s survey, _ time.Duration) []driver.Finding {
	n := s.info.Config.MaxMsgsPerSubject
	if n == 1 {
		return none
	}
	return one(driver.Advice, "history", fmt.Sprintf("%s old records are kept for each election, which nothing reads", many(n)),
		s.edit("--history 1"))
}

func many(n int64) string {
	if n <= 0 {
		return "all"
	}
	return fmt.Sprint(n - 1)
}

func atRelease(s survey, _ time.Duration) []driver.Finding {
	r := parseServerVersion(s.server)
	if !r.known() || r.atLeast(durable) || s.info.Config.Replicas < 2 {
		return none
	}
	return one(driver.Warning, "server", fmt.Sprintf("release %v may lose acknowledged writes of replicated buckets when "+
		"servers fail: terms may repeat", r), fmt.Sprintf("upgrade all servers to %v or newer", durable))
}

// atServers checks for servers of another cluster.
func atServers(s survey, _ time.Duration) []driver.Finding {
	const oneCluster = "give all candidates the same servers, of one cluster only"
	var found []driver.Finding
	for _, o := range s.others {
		switch {
		case o.Created.IsZero():
			found = append(found, one(driver.Unsafe, "servers", fmt.Sprintf("%s, one of the servers given, has no bucket %s, so it "+
				"belongs to another cluster: a candidate that connects to it does not take part, or makes a bucket there and becomes a second "+
				"leader", o.Server, s.bucket), oneCluster)...)
		case !o.Created.Equal(s.info.Created):
			found = append(found, one(driver.Unsafe, "servers", fmt.Sprintf("%s, one of the servers given, has another bucket %s, "+
				"made on %s, so it belongs to another cluster: each of them elects a leader", o.Server, s.bucket,
				identity.Stamp(o.Created)), oneCluster)...)
		}
	}
	return found
}

// atSequences checks where the sequences of a bucket begin.
func atSequences(s survey, _ time.Duration) []driver.Finding {
	const setting = "first_seq"
	c, r := s.info.Config, parseServerVersion(s.server)
	switch {
	case s.info.State.LastSeq < absolute:
		return one(driver.Warning, setting, "the bucket counts its writes from 1, and does so again "+
			"when it is recreated: a candidate that was paused meanwhile may find the sequence that "+
			"it expects on the record of another candidate, and overwrite it", s.renumber())
	case c.FirstSeq > 1 && c.Storage == "file" && r.losesFirst():
		return one(driver.Unsafe, setting, fmt.Sprintf("release %v may lose all records of this "+
			"bucket, and the terms with them, when the server restarts, because the sequences do not "+
			"begin at 1", r), "upgrade all servers to 2.10.28, 2.11.2 or newer")
	case c.FirstSeq > 1 && s.offBy() > identity.ClockSkew:
		return one(driver.Warning, setting, fmt.Sprintf("the program that created the bucket had a "+
			"clock that was %v off the server's, and the sequences begin at its time: tokens may fall "+
			"when the bucket is recreated", s.offBy().Round(time.Second)), "set the clocks; before "+
			"you recreate the bucket, note the highest token, and while the new bucket is "+
			"empty run nats stream purge with --seq above that token")
	}
	return none
}

// offBy returns how far the first sequence is from the creation of the stream.
func (s survey) offBy() time.Duration {
	first, made := s.info.Config.FirstSeq, uint64(s.info.life())
	if made == 0 { // the server does not report it
		return 0
	}
	apart := max(first, made) - min(first, made)
	return time.Duration(min(apart, latest)) * time.Microsecond //nolint:gosec // at most 143 years
}

// renumber returns how an existing bucket gets sequences that do not recur.
func (s survey) renumber() string {
	const all = "which deletes every record of a bucket that is not empty"
	if s.info.State.Messages > 0 {
		return fmt.Sprintf("%s, and then nats stream purge KV_%s --seq with the time of that moment "+
			"in microseconds, %s", s.recreation(""), s.bucket, all)
	}
	next := max(s.info.floor()+1, uint64(max(0, s.info.Now.UnixMicro())))
	return fmt.Sprintf("while no candidate of an older release of Tenure runs: nats stream purge "+
		"KV_%s --seq %d, %s", s.bucket, next, all)
}

// streamInfo is the part of the server's description of a stream that the store needs.
type streamInfo struct {
	Config  streamConfig `json:"config"`
	State   streamState  `json:"state"`
	Cluster streamGroup  `json:"cluster"`
	Created time.Time    `json:"created"`
	Now     time.Time    `json:"ts"`
}

// life returns 0 where the description has no time of creation.
func (i streamInfo) life() life { return life(max(0, i.Created.UnixMicro())) }

// untouched reports whether nothing was ever stored: the last sequence is the one before the first,
// and no message has left its time.
func (i streamInfo) untouched() bool {
	return i.State.LastSeq+1 == max(1, i.Config.FirstSeq) && i.State.Messages == 0 && i.State.LastTime.IsZero()
}

// neverWritten reports whether the stream is known to be untouched. A recent restart may have
// emptied memory, and also files in a release that loses them. Before 2.9.0 a server did not
// compare the last sequence with an expected one of 0.
func (i streamInfo) neverWritten(r serverVersion) bool {
	return i.untouched() && i.Config.Storage == "file" && r.atLeast(serverVersion{2, 9, 0}) &&
		(i.Config.FirstSeq <= 1 || r.beginsAnywhere())
}

// floor returns the floor of an absent key.
func (i streamInfo) floor() uint64 { return i.life().floor(i.State.LastSeq) }

// streamGroup has no name on a server outside a cluster.
type streamGroup struct {
	Name string `json:"name"`
}

type streamState struct {
	Messages uint64    `json:"messages"`
	Bytes    uint64    `json:"bytes"`
	LastSeq  uint64    `json:"last_seq"`
	LastTime time.Time `json:"last_ts"`
}

// streamConfig has the server's names for its settings.
type streamConfig struct {
	Subjects             []string        `json:"subjects"`
	Retention            string          `json:"retention"`
	MaxMsgs              int64           `json:"max_msgs"`
	MaxBytes             int64           `json:"max_bytes"`
	MaxAge               time.Duration   `json:"max_age"`
	MaxMsgsPerSubject    int64           `json:"max_msgs_per_subject"`
	MaxMsgSize           int64           `json:"max_msg_size"`
	Discard              string          `json:"discard"`
	DiscardNewPerSubject bool            `json:"discard_new_per_subject"`
	Storage              string          `json:"storage"`
	Replicas             int             `json:"num_replicas"`
	NoAck                bool            `json:"no_ack"`
	Mirror               *origin         `json:"mirror"`
	Sources              []origin        `json:"sources"`
	Sealed               bool            `json:"sealed"`
	MarkerTTL            time.Duration   `json:"subject_delete_marker_ttl"`
	PersistMode          string          `json:"persist_mode"`
	Transform            json.RawMessage `json:"subject_transform"`
	FirstSeq             uint64          `json:"first_seq"` // 0 if unset, or dropped since
}

// origin is another stream that a stream copies.
type origin struct {
	Name string `json:"name"`
}

// convert turns a client library's description of a stream into ours: all of them keep the server's
// names.
func convert(info any) (streamInfo, error) {
	text, err := json.Marshal(info)
	if err != nil {
		return streamInfo{}, err
	}
	var s streamInfo
	err = json.Unmarshal(text, &s)
	return s, err
}

// absolute is the least sequence that is a floor by itself. A stream whose sequences begin at the
// time in microseconds has exceeded it since 2005. A stream that counts from 1 would need 35 years
// at a million writes a second.
const absolute uint64 = 1 << 50

// life names one life of a bucket: when its stream was created, in microseconds by the server's
// clock.
//
// The sequence never goes back while a stream lives, and no term is above the floor of the sequence
// that brought it. A stream of Create begins at the present time in microseconds: its sequences are
// floors by themselves, and none of them recurs in another life. A stream that counts from 1 begins
// there again when it is recreated, so its floors are counted from its creation. Either way the
// floors of a later life are above those of an earlier one, if that took fewer than a million
// writes a second and no clock was set back. Within one life no clock matters. Both kinds stay
// below the largest term, 2^53, until the year 2255.
//
// The sequence alone distinguishes the two kinds. No clocks are compared, and the configuration is
// not used: key-value clients drop the first sequence from it when they update a bucket.
type life uint64

// entry turns a message of this life into an entry.
//
// The message's own sequence suffices as the floor. Every term was claimed at most one above a
// floor, so no term is higher than the floor of the message that brought it, and earlier messages
// of the key have lower sequences than this one. If a later one exists by now, the claim fails,
// since it names this one as the last.
//
// Credible terms can be above it all the same: a handle that does not describe its stream sees the
// bare sequence, and older releases count twice the time. None of them is above the ceiling.
func (l life) entry(sequence uint64, value []byte) driver.Entry {
	return driver.Entry{
		Value:   value,
		Version: versionOf(sequence),
		Floor:   l.floor(sequence),
		Ceiling: latest,
		Era:     uint64(l),
	}
}

func (l life) floor(sequence uint64) uint64 {
	if sequence >= absolute {
		return sequence
	}
	return uint64(l) + sequence
}

// sequence returns the sequence with this floor in a stream that ends at last, 0 if there is none.
func (l life) sequence(floor, last uint64) uint64 {
	sequence := floor
	if last < absolute {
		sequence = max(floor, uint64(l)) - uint64(l)
	}
	if sequence > last {
		return 0
	}
	return sequence
}

// serverVersion is a server's release: major, minor, patch. The zero value is an unknown one, older
// than all.
type serverVersion [3]int

// parseServerVersion ignores text after the numbers, such as "-RC.1".
func parseServerVersion(text string) serverVersion {
	var r serverVersion
	if _, err := fmt.Sscanf(text, "%d.%d.%d", &r[0], &r[1], &r[2]); err != nil {
		return serverVersion{}
	}
	return r
}

func (r serverVersion) known() bool { return r != serverVersion{} }

func (r serverVersion) atLeast(other serverVersion) bool { return slices.Compare(r[:], other[:]) >= 0 }

// losesFirst reports whether the release may start without the messages of a file stream that has
// a first sequence of its own, while the first message is still there
// (https://github.com/nats-io/nats-server/pull/6753).
func (r serverVersion) losesFirst() bool {
	return r.atLeast(serverVersion{2, 10, 0}) && !r.atLeast(serverVersion{2, 10, 28}) ||
		r.atLeast(serverVersion{2, 11, 0}) && !r.atLeast(serverVersion{2, 11, 2})
}

// beginsAnywhere reports whether a stream can safely have a first sequence of its own.
func (r serverVersion) beginsAnywhere() bool {
	return r.atLeast(serverVersion{2, 10, 28}) && !r.losesFirst()
}

func (r serverVersion) String() string { return fmt.Sprintf("%d.%d.%d", r[0], r[1], r[2]) }

// How a record was lost. These errors come as the Notice of an entry, and with the event that
// reports the loss. Use errors.Is.
var (
	// ErrDeleted: a client deleted the key, as "nats kv del" does.
	ErrDeleted = errors.New("the key was deleted, as by \"nats kv del\"")
	// ErrPurged: a client purged the key or the stream.
	ErrPurged = errors.New("the key or the stream was purged, as by \"nats kv purge\" or \"nats stream purge\"")
	// ErrExpired: the server removed the record when it was older than the bucket's TTL.
	ErrExpired = errors.New("the record expired by the bucket's TTL, which should be longer than any lease")
)

// removal returns why a message is a marker; nil if it is none. Clients and servers mark in
// different ways.
func removal(h nats.Header) error {
	switch h.Get("KV-Operation") {
	case "DEL":
		return ErrDeleted
	case "PURGE":
		return ErrPurged
	}
	switch reason := h.Get("Nats-Marker-Reason"); reason {
	case "":
		return nil
	case "MaxAge":
		return ErrExpired
	case "Purge":
		return ErrPurged
	case "Remove":
		return ErrDeleted
	default:
		return fmt.Errorf("the server removed the record: %s", reason)
	}
}

// loss returns the reason if the key of a vanished record has no message, not even a marker; nil if
// the stream never had a message. If the stream is empty before its messages can have expired, it
// was purged.
func (i streamInfo) loss() error {
	switch age := i.Config.MaxAge; {
	case i.untouched():
		return nil
	case age == 0, i.State.Messages == 0 && !i.Now.IsZero() && i.Now.Sub(i.State.LastTime) < age:
		return ErrPurged
	}
	return fmt.Errorf("%w, or was purged", ErrExpired)
}

// removed is removal for the client libraries' form of the headers.
func removed(deleted, purged bool) error {
	switch {
	case deleted:
		return ErrDeleted
	case purged:
		return ErrPurged
	}
	return nil
}
