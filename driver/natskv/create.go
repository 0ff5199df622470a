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
		return b.createAt(ctx, c, first)
	}
	_, err = js.CreateKeyValue(ctx, c)
	return err
}
