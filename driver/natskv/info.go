package natskv

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/tenure-go/tenure/driver"
)

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
