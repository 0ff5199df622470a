package natskv

import (
	"context"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

const (
	// latest is in the year 2112. A clock that shows more is wrong, and terms need room above.
	latest uint64 = 1 << 52
	// fixedLevel is the JetStream API level of 2.12. From it on, every release can begin anywhere.
	fixedLevel = 2
	// longestDedupe is the longest window for duplicates that the client library gives a bucket.
	longestDedupe = 2 * time.Minute
)

// firstSequence returns the first sequence of a new bucket: the time in microseconds. It returns 0
// for a bucket that counts from 1, because the server cannot do otherwise, or not safely, because
// the records come from another bucket, or because this machine's clock is wrong.
func (b *bucket) firstSequence(c jetstream.KeyValueConfig, level int, now time.Time) uint64 {
	first := uint64(max(0, now.UnixMicro()))
	copies := c.Mirror != nil || len(c.Sources) > 0
	if !b.beginsAnywhere(level) || first < absolute || first > latest || copies || invalid(c, level) {
		return 0
	}
	return first
}

// beginsAnywhere uses the API level where JetStream may run on another server than the connected
// one.
func (b *bucket) beginsAnywhere(level int) bool {
	if b.conn.API() != jetstream.DefaultAPIPrefix {
		return level >= fixedLevel
	}
	return b.serverRelease().beginsAnywhere()
}

// invalid reports whether the client library refuses such a bucket. Then it returns its own error.
func invalid(c jetstream.KeyValueConfig, level int) bool {
	return c.History > jetstream.KeyValueMaxHistory || c.LimitMarkerTTL != 0 && level < 1
}

// createAt makes the stream of a bucket, because jetstream.KeyValueConfig has no first sequence.
func (b *bucket) createAt(ctx context.Context, c jetstream.KeyValueConfig, first uint64) error {
	s := b.streamOf(c)
	s.FirstSeq = first
	_, err := b.conn.JetStream().CreateStream(ctx, s)
	return err
}

// streamOf returns the stream that the client library makes for a bucket without mirror and
// sources. A test compares the two.
func (b *bucket) streamOf(c jetstream.KeyValueConfig) jetstream.StreamConfig {
	s := jetstream.StreamConfig{
		Name:                   b.stream,
		Description:            c.Description,
		Subjects:               []string{b.stored + ">"},
		MaxMsgsPerSubject:      max(1, int64(c.History)),
		MaxBytes:               orUnlimited(c.MaxBytes),
		MaxAge:                 c.TTL,
		MaxMsgSize:             orUnlimited(c.MaxValueSize),
		Storage:                c.Storage,
		Replicas:               max(1, c.Replicas),
		Placement:              c.Placement,
		AllowRollup:            true,
		DenyDelete:             true,
		Duplicates:             longestDedupe,
		MaxMsgs:                -1,
		MaxConsumers:           -1,
		AllowDirect:            true,
		RePublish:              c.RePublish,
		Discard:                jetstream.DiscardNew,
		AllowMsgTTL:            c.LimitMarkerTTL != 0,
		SubjectDeleteMarkerTTL: c.LimitMarkerTTL,
		Metadata:               c.Metadata,
	}
	if c.TTL > 0 {
		s.Duplicates = min(c.TTL, longestDedupe)
	}
	if c.Compression {
		s.Compression = jetstream.S2Compression
	}
	return s
}

func orUnlimited[N int32 | int64](n N) N {
	if n == 0 {
		return -1
	}
	return n
}
