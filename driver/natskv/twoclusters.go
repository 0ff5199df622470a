package natskv

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/natskv/internal/connection"
	"github.com/tenure-go/tenure/driver/natskv/internal/identity"
)

// ErrTwoClusters means that the connection has come to another bucket of the same name. That bucket
// already existed while the known one was in use, so the known bucket was not deleted and
// recreated. Either the servers in the URL belong to two clusters, or an older bucket was put back.
// The store reads and writes nothing there, since another candidate may lead by the other bucket.
var ErrTwoClusters = identity.ErrTwoClusters

// identify refuses the stream of another cluster, and leaves the server that has it.
func (b *bucket) identify(info streamInfo, connection uint64) error {
	err := b.identity.Check(info.Created, info.Now, connection)
	if err != nil {
		b.conn.MoveOn()
	}
	return err
}

// confirm checks before a write that the connection still leads to the same stream.
func (b *bucket) confirm(ctx context.Context) error {
	return b.identity.Confirm(b.conn.Number, func() (time.Time, error) { return b.createdAt(ctx) })
}

func (b *bucket) createdAt(ctx context.Context) (time.Time, error) {
	info, err := b.info(ctx)
	return info.Created, err
}

// createdThere returns when the stream of the bucket's name on another server was created, zero if
// there is none.
func (b *bucket) createdThere(ctx context.Context, there *connection.Conn) (time.Time, error) {
	created, err := newBucket(there, b.name).createdAt(ctx)
	if hasCode(err, jetstream.JSErrCodeStreamNotFound) || errors.Is(err, nats.ErrNoResponders) {
		return time.Time{}, nil
	}
	return created, err
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
