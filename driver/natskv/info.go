package natskv

import (
	"encoding/json"
	"time"
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
func (i streamInfo) neverWritten(r release) bool {
	return i.untouched() && i.Config.Storage == "file" && r.atLeast(release{2, 9, 0}) &&
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
