package natskv

import (
	"context"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/natskv/internal/connection"
	"github.com/tenure-go/tenure/driver/natskv/internal/identity"
)

// unwritten begins the version of a cell in a stream that never had a message. The stream's last
// sequence follows. The version is not a number, so no write has it.
const unwritten = "unwritten "

func isUnwritten(v driver.Version) bool { return strings.HasPrefix(string(v), unwritten) }

// bucket accesses a bucket over the connection.
type bucket struct {
	conn   *connection.Conn
	name   string
	stream string // the stream behind the bucket
	stored string // prefix under which the stream stores the keys
	sendTo string // prefix to which a key's value is published
	// pristine: the caller vouches that no candidate is alive that knew an earlier bucket of this
	// name.
	pristine bool
	ttl      ttl
	identity identity.Stream
}

// newBucket computes the names of a bucket's parts. In a JetStream domain all of them are behind
// the domain's API prefix, but the stream stores the subjects without it.
func newBucket(conn *connection.Conn, name string) *bucket {
	b := &bucket{
		conn:   conn,
		name:   name,
		stream: "KV_" + name,
		stored: "$KV." + name + ".",
	}
	b.sendTo = b.stored
	if api := conn.API(); api != jetstream.DefaultAPIPrefix {
		b.sendTo = api + b.stored
	}
	return b
}

// notAvailable is the code for a cluster that has no leader for cluster-wide questions.
const notAvailable jetstream.ErrorCode = 10008

// Read asks the stream's leader, which decides on the next write. It asks first for the key and
// then for the stream, so that the floor is not older than the value. If the bucket was recreated
// in between, the floor is higher still.
func (b *bucket) Read(ctx context.Context, key string) (driver.Entry, error) {
	release, err := b.conn.AcquireRead(ctx)
	if err != nil {
		return driver.Entry{}, err
	}
	defer release()
	m, err := b.last(ctx, key)
	if err != nil {
		return driver.Entry{}, err
	}
	info, err := b.info(ctx)
	// A record has its own term to go by, a marker has none.
	if len(m.Data) > 0 && hasCode(err, notAvailable) {
		if created, here := b.identity.Met(b.conn.Number()); here && !created.IsZero() {
			info, err = streamInfo{Created: created}, nil
		}
	}
	if err != nil {
		return driver.Entry{}, err
	}
	if m.Sequence == 0 {
		return b.absent(info), nil
	}
	e := info.life().entry(m.Sequence, m.Data)
	e.Notice = removal(m.headers())
	return e, nil
}

// message is a message of a stream. The zero value stands for none.
type message struct {
	Sequence uint64 `json:"seq"`
	Data     []byte `json:"data"`
	Header   []byte `json:"hdrs"`
}

// headers returns the headers of a message. An operator may have written the message by hand, so
// unreadable headers count as empty.
func (m message) headers() nats.Header {
	h, _ := nats.DecodeHeadersMsg(m.Header)
	return h
}

// last returns the last message of the key.
//
// The headers carry information for people. A delete marker is a message without a body, whether a
// client or the server wrote it and why. A marker with a body is a record that older programs take
// for a deleted key.
func (b *bucket) last(ctx context.Context, key string) (message, error) {
	var got struct {
		answer
		Message message `json:"message"`
	}
	// Neither a key nor the name of a bucket can contain characters that JSON must escape.
	body := `{"last_by_subj":"` + b.stored + key + `"}`
	err := b.call(ctx, getMessage+b.stream, []byte(body), &got)
	if hasCode(err, jetstream.JSErrCodeMessageNotFound) {
		return message{}, nil
	}
	return got.Message, err
}

func versionOf(sequence uint64) driver.Version {
	return driver.Version(strconv.FormatUint(sequence, 10))
}

// absent describes a key without a message in the stream.
func (b *bucket) absent(info streamInfo) driver.Entry {
	e := info.life().entry(info.State.LastSeq, nil)
	if b.pristine && info.neverWritten(b.serverRelease()) {
		e.Version, e.Pristine = unwritten+e.Version, true
		return e
	}
	e.Version, e.Notice = "", info.loss()
	return e
}

func (b *bucket) info(ctx context.Context) (streamInfo, error) {
	var got struct {
		answer
		streamInfo
	}
	over := b.conn.Number()
	err := b.call(ctx, "STREAM.INFO."+b.stream, nil, &got)
	if err == nil {
		b.ttl.learn(got.streamInfo)
		err = b.identify(got.streamInfo, over)
	}
	return got.streamInfo, err
}

func (b *bucket) serverRelease() release { return parseRelease(b.conn.NATS().ConnectedServerVersion()) }

func (b *bucket) survey(ctx context.Context) (survey, error) {
	info, err := b.info(ctx)
	if err != nil {
		return survey{}, err
	}
	return survey{
		bucket:     b.name,
		info:       info,
		server:     b.conn.NATS().ConnectedServerVersion(),
		maxPayload: b.conn.NATS().MaxPayload(),
		others:     identity.ProbeCluster(ctx, b.conn, b.createdThere),
	}, nil
}

func (b *bucket) bucket() string { return b.name }
