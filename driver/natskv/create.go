package natskv

import (
	"context"
	"errors"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// markerTTL keeps the marker of an expired key for longer than any lease.
const markerTTL = 2 * time.Hour

// CreateOption changes the bucket that Create makes. A program may define its own.
type CreateOption func(*jetstream.KeyValueConfig)

// Create lets Open make the bucket if it is missing: file storage, history 1, one replica, no TTL,
// and markers of expired keys where the server has them (2.11 and newer). It changes no bucket that
// exists. The first leader under a new key is elected after one lease; in a new bucket Pristine
// avoids that.
//
// Where the server can do so (2.10.28, 2.11.2 and newer; in a JetStream domain 2.12), the sequences
// of the bucket begin at the present time of this machine in microseconds, so that none recurs when
// the bucket is deleted and recreated. Candidates of older releases of Tenure must not take part in
// such a bucket; docs/nats.md says why.
func Create(opts ...CreateOption) Option {
	return func(o *opening) {
		c := jetstream.KeyValueConfig{
			Description: "leader elections",
			History:     1,
			Storage:     jetstream.FileStorage,
			Replicas:    1,
		}
		for _, opt := range opts {
			opt(&c)
		}
		o.create = &c
	}
}

// Replicas sets on how many servers of a cluster the bucket is kept: 1, 3 or 5. Three survive the
// loss of one.
func Replicas(n int) CreateOption {
	return func(c *jetstream.KeyValueConfig) { c.Replicas = n }
}

// MaxBytes limits the bucket's size in bytes, which some accounts demand. An election takes fewer
// than 5,000 bytes.
func MaxBytes(n int64) CreateOption {
	return func(c *jetstream.KeyValueConfig) { c.MaxBytes = n }
}

// create makes the bucket. Several candidates may try at once: one of them succeeds, and the others
// find it.
func (b *bucket) create(ctx context.Context, c jetstream.KeyValueConfig) error {
	c.Bucket = b.name
	api := b.conn.API()
	err := b.conn.Monitored(ctx, func(ctx context.Context) error { return b.createWithin(ctx, c) },
		api+"INFO", api+"STREAM.CREATE."+b.stream)
	if errors.Is(err, jetstream.ErrBucketExists) || errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) {
		return nil
	}
	return err
}

func (b *bucket) createWithin(ctx context.Context, c jetstream.KeyValueConfig) error {
	js := b.conn.JetStream()
	account, err := js.AccountInfo(ctx)
	if err != nil {
		return err
	}
	if account.API.Level >= 1 && c.LimitMarkerTTL == 0 {
		c.LimitMarkerTTL = markerTTL
	}
	if first := b.firstSequence(c, account.API.Level, time.Now()); first > 0 {
		s := b.streamOf(c) // because jetstream.KeyValueConfig has no first sequence
		s.FirstSeq = first
		_, err = js.CreateStream(ctx, s)
		return err
	}
	_, err = js.CreateKeyValue(ctx, c)
	return err
}

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
	return b.serverVersion().beginsAnywhere()
}

// invalid reports whether the client library refuses such a bucket. Then it returns its own error.
func invalid(c jetstream.KeyValueConfig, level int) bool {
	return c.History > jetstream.KeyValueMaxHistory || c.LimitMarkerTTL != 0 && level < 1
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
