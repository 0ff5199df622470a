package natskv

import (
	"encoding/json"
	"time"
)

// streamInfo is what the store needs of the server's description of a stream.
type streamInfo struct {
	Config  streamConfig `json:"config"`
	State   streamState  `json:"state"`
	Cluster streamGroup  `json:"cluster"`
	Created time.Time    `json:"created"`
	Now     time.Time    `json:"ts"`
}

// life is 0 where the description does not say.
func (i streamInfo) life() life { return life(max(0, i.Created.UnixMicro())) }

// streamGroup has no name on a server that is in no cluster.
type streamGroup struct {
	Name string `json:"name"`
}

type streamState struct {
	Messages uint64    `json:"messages"`
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
}

// origin is another stream that a stream copies.
type origin struct {
	Name string `json:"name"`
}

// convert turns a client library's description of a stream into ours: all of them keep the server's names.
func convert(info any) (streamInfo, error) {
	text, err := json.Marshal(info)
	if err != nil {
		return streamInfo{}, err
	}
	var s streamInfo
	err = json.Unmarshal(text, &s)
	return s, err
}
