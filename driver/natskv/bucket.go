package natskv

import (
	"context"
	"strconv"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/tenure-go/tenure/driver"
)

// unwritten is the version of a cell in a stream that never had a message. It is no number, so no write has it.
const unwritten driver.Version = "unwritten"

// bucket reaches a bucket over the connection.
type bucket struct {
	nc     *nats.Conn
	name   string
	stream string // the stream behind the bucket
	api    string // prefix of the JetStream API's subjects
	stored string // prefix under which the stream stores the keys
	sendTo string // prefix to which a key's value is published
}

// newBucket says where the parts of a bucket are. In a JetStream domain all of it is behind the domain's API prefix, but
// the stream stores what comes out on the other side.
func newBucket(js jetstream.JetStream, name string) *bucket {
	b := &bucket{
		nc:     js.Conn(),
		name:   name,
		stream: "KV_" + name,
		api:    apiPrefix(js.Options()),
		stored: "$KV." + name + ".",
	}
	b.sendTo = b.stored
	if b.api != jetstream.DefaultAPIPrefix {
		b.sendTo = b.api + b.stored
	}
	return b
}

func apiPrefix(o jetstream.JetStreamOptions) string {
	switch {
	case o.Domain != "":
		return "$JS." + o.Domain + ".API."
	case o.APIPrefix == "":
		return jetstream.DefaultAPIPrefix
	case o.APIPrefix[len(o.APIPrefix)-1] != '.':
		return o.APIPrefix + "."
	}
	return o.APIPrefix
}

// Read asks the stream's leader, which is who decides the next write.
func (b *bucket) Read(ctx context.Context, key string) (driver.Entry, error) {
	e, err := b.last(ctx, key)
	if hasCode(err, jetstream.JSErrCodeMessageNotFound) {
		return b.absent(ctx)
	}
	return e, err
}

// last returns the last message of the key.
//
// What its headers say does not matter. A delete marker is a message without a body, whether a client or the server wrote
// it and why, and a marker with a body is a record that older programs take for a deleted key.
//
// The message's own sequence is floor enough. Every term was claimed at most one above a floor, so no term is higher than
// the sequence of the message that brought it, and earlier messages of the key have lower sequences than this one. If a
// later one exists by now, the claim fails, since it names this one as the last.
func (b *bucket) last(ctx context.Context, key string) (driver.Entry, error) {
	var got struct {
		answer
		Message struct {
			Sequence uint64 `json:"seq"`
			Data     []byte `json:"data"`
		} `json:"message"`
	}
	// Neither a key nor the name of a bucket can hold what JSON would have to escape.
	body := `{"last_by_subj":"` + b.stored + key + `"}`
	if err := b.call(ctx, "STREAM.MSG.GET."+b.stream, []byte(body), &got); err != nil {
		return driver.Entry{}, err
	}
	return written(got.Message.Sequence, got.Message.Data), nil
}

func written(sequence uint64, value []byte) driver.Entry {
	return driver.Entry{Value: value, Version: versionOf(sequence), Floor: sequence}
}

func versionOf(sequence uint64) driver.Version {
	return driver.Version(strconv.FormatUint(sequence, 10))
}

// absent describes a key that the stream has no message of. It is asked for after the key was found to be absent, so the
// floor is not older than that.
func (b *bucket) absent(ctx context.Context) (driver.Entry, error) {
	info, err := b.info(ctx)
	if err != nil {
		return driver.Entry{}, err
	}
	if b.neverWritten(info) {
		return driver.Entry{Version: unwritten, Pristine: true}, nil
	}
	return driver.Entry{Floor: info.State.LastSeq}, nil
}

// neverWritten reports whether the stream is known to be untouched. Memory may have been full until a restart a moment
// ago, and before 2.9.0 a server did not look whether the sequence that it should expect was 0.
func (b *bucket) neverWritten(info streamInfo) bool {
	return info.State.LastSeq == 0 && info.Config.Storage == "file" &&
		parseRelease(b.nc.ConnectedServerVersion()).atLeast(release{2, 9, 0})
}

// info asks the stream's leader for the stream's settings and state.
func (b *bucket) info(ctx context.Context) (streamInfo, error) {
	var got struct {
		answer
		streamInfo
	}
	err := b.call(ctx, "STREAM.INFO."+b.stream, nil, &got)
	return got.streamInfo, err
}

func (b *bucket) survey(ctx context.Context) (survey, error) {
	info, err := b.info(ctx)
	return survey{
		bucket:     b.name,
		info:       info,
		server:     b.nc.ConnectedServerVersion(),
		maxPayload: b.nc.MaxPayload(),
	}, err
}

func (b *bucket) bucket() string { return b.name }
