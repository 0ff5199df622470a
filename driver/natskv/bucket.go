package natskv

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/abandon"
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
	switch never := info.neverWritten(b.serverVersion()); {
	case never && b.pristine:
		e.Version, e.Pristine = unwritten+e.Version, true
	case never:
		e.Version, e.Notice = "", errUnwritten
	default:
		e.Version, e.Notice = "", info.loss()
	}
	return e
}

// errUnwritten is the notice of an absence in a bucket to which nothing was ever written.
var errUnwritten = fmt.Errorf("%w to the bucket; in one that is certainly new, "+
	"natskv.Pristine() or ?pristine=true in the URL avoids this wait", driver.ErrUnwritten)

func (b *bucket) info(ctx context.Context) (streamInfo, error) {
	var got struct {
		answer
		streamInfo
	}
	over := b.conn.Number()
	err := b.call(ctx, "STREAM.INFO."+b.stream, nil, &got)
	if err != nil {
		return got.streamInfo, err
	}
	b.ttl.learn(got.streamInfo)
	if err = b.identity.Check(got.Created, got.Now, over); err != nil {
		b.conn.MoveOn() // leaves the server that has the stream of another cluster
	}
	return got.streamInfo, err
}

func (b *bucket) serverVersion() serverVersion {
	return parseServerVersion(b.conn.NATS().ConnectedServerVersion())
}

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

const getMessage = "STREAM.MSG.GET."

// request sends one message and returns the one answer. A write is preceded by another request if
// the connection is a new one, and is not sent if the connection is replaced after that. Also are
// subjects to which something was published for its sake before.
func (b *bucket) request(
	ctx context.Context, m *nats.Msg, p connection.Purpose, also ...string,
) (*nats.Msg, error) {
	number := b.conn.Number()
	if p == connection.Write {
		if err := b.confirm(ctx); err != nil {
			return nil, err
		}
	}
	return b.conn.Request(ctx, number, m, p, also...)
}

// refusable is an answer of the JetStream API.
type refusable interface{ refused() error }

// answer is the part that every answer of the JetStream API may hold instead of the data.
type answer struct {
	Error *jetstream.APIError `json:"error"`
}

func (a answer) refused() error {
	if a.Error == nil {
		return nil
	}
	return a.Error
}

// call asks the JetStream API and decodes the answer. It changes nothing on the server that a store
// depends on.
func (b *bucket) call(ctx context.Context, subject string, body []byte, into refusable, also ...string) error {
	purpose := connection.Other
	if strings.HasPrefix(subject, getMessage) {
		purpose = connection.Read
	}
	m, err := b.request(ctx, &nats.Msg{Subject: b.conn.API() + subject, Data: body}, purpose, also...)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(m.Data, into); err != nil {
		return fmt.Errorf("an answer that cannot be understood: %w", err)
	}
	return into.refused()
}

// hasCode reports whether err is the JetStream API's error with that code.
func hasCode(err error, code jetstream.ErrorCode) bool {
	var api *jetstream.APIError
	return errors.As(err, &api) && api.ErrorCode == code
}

// CompareAndSwap is one publish under conditions that the stream's leader checks.
func (b *bucket) CompareAndSwap(ctx context.Context, key string, prev driver.Version, value []byte) (driver.Version, error) {
	return b.swap(ctx, key, prev, value, false)
}

// markDeleted is CompareAndSwap for a value that clients of a key-value bucket should take for a
// deleted key.
func (b *bucket) markDeleted(ctx context.Context, key string, prev driver.Version, value []byte) (driver.Version, error) {
	return b.swap(ctx, key, prev, value, true)
}

func (b *bucket) swap(ctx context.Context, key string, prev driver.Version, value []byte, marked bool) (driver.Version, error) {
	header, err := b.conditions(prev)
	if err != nil {
		return "", err
	}
	if marked {
		header["KV-Operation"] = []string{"DEL"}
	}
	m, err := b.request(ctx, &nats.Msg{Subject: b.sendTo + key, Header: header, Data: value}, connection.Write)
	if err != nil {
		return "", err
	}
	return b.outcome(m.Data)
}

// conditions returns the headers of a publish that succeeds only from this version. They name the
// stream, since another one may have taken over the bucket's subjects. There is no message id: a
// server answers a repeated id with the success of the first message, whatever the second expected.
func (b *bucket) conditions(prev driver.Version) (nats.Header, error) {
	h := nats.Header{jetstream.ExpectedStreamHeader: {b.stream}}
	if last, ok := strings.CutPrefix(string(prev), unwritten); ok {
		sequence, err := strconv.ParseUint(last, 10, 64)
		h[jetstream.ExpectedLastSeqHeader] = []string{strconv.FormatUint(sequence, 10)}
		return h, err
	}
	sequence, err := sequenceOf(prev)
	if err != nil {
		return nil, err
	}
	h[jetstream.ExpectedLastSubjSeqHeader] = []string{strconv.FormatUint(sequence, 10)}
	return h, nil
}

// sequenceOf returns the last sequence that a write from this version expects, 0 if it expects
// none.
func sequenceOf(v driver.Version) (uint64, error) {
	if v == "" {
		return 0, nil
	}
	sequence, err := strconv.ParseUint(string(v), 10, 64)
	if err != nil || sequence == 0 {
		return 0, fmt.Errorf("version %q is none of this store's", string(v))
	}
	return sequence, nil
}

// outcome reads the answer to a publish.
//
// A wrong last sequence is the only refusal that counts as a conflict. Most others, such as a full
// disk or a value that is too long, also mean that nothing was stored, but not all do: while the
// last write to a key is on its way to the replicas, and when a leader steps down, the answer does
// not decide the fate of the message. Separate errors would not help, because the caller reads
// after either.
func (b *bucket) outcome(data []byte) (driver.Version, error) {
	var ack struct {
		answer
		Stream    string `json:"stream"`
		Sequence  uint64 `json:"seq"`
		Duplicate bool   `json:"duplicate"`
	}
	if err := json.Unmarshal(data, &ack); err != nil {
		return "", fmt.Errorf("an answer that cannot be understood: %w", err)
	}
	switch err := ack.refused(); {
	case isConflict(err):
		return "", fmt.Errorf("%w (%w)", driver.ErrConflict, err)
	case hasCode(err, storeFailed):
		return "", fmt.Errorf("the server cannot store anything in bucket %s: %w; look at its limits and at the server's disk: "+
			"nats stream info %s; if it is full, allow more: nats stream edit %[3]s %s", b.name, err, b.stream, limitOf(err))
	case hasCode(err, tooLong):
		return "", fmt.Errorf("the server refused: %w; allow longer messages: nats stream edit %s --max-msg-size=-1", err, b.stream)
	case err != nil:
		return "", fmt.Errorf("the server refused: %w", err)
	case ack.Stream != b.stream:
		return "", fmt.Errorf("stream %q took the write instead of %s: its subjects overlap: change the subjects of that stream", ack.Stream, b.stream)
	case ack.Sequence == 0 || ack.Duplicate:
		return "", fmt.Errorf("the server acknowledged another write (sequence %d)", ack.Sequence)
	}
	return versionOf(ack.Sequence), nil
}

// storeFailed is a code that the library does not name: a full bucket or disk, among others.
const storeFailed jetstream.ErrorCode = 10077

// tooLong is a code that the library does not name: a message is longer than the stream allows.
const tooLong jetstream.ErrorCode = 10054

// limitOf returns the option that lifts the limit of a full stream.
func limitOf(full error) string {
	if strings.Contains(full.Error(), "maximum messages exceeded") {
		return "--max-msgs=-1"
	}
	return "--max-bytes=-1"
}

// isConflict accepts both codes of the same refusal: replicated streams give the second one while
// an earlier write to the key, perhaps the caller's own, is on its way.
func isConflict(err error) bool {
	return hasCode(err, jetstream.JSErrCodeStreamWrongLastSequence) ||
		hasCode(err, jetstream.JSErrCodeStreamWrongLastSequenceConstant)
}

// unreachable is a sequence that no stream reaches: a million messages a second would take 146,000
// years.
const unreachable uint64 = 1 << 62

// CheckRights returns an error that wraps driver.ErrDenied if the right to write the key is
// missing. It publishes a delete marker under the condition that the last sequence of the key is
// one that no stream reaches. The server checks that condition first, so it stores nothing, with
// any setting of the bucket. CheckRights returns the error of CheckKey, and any other error if no
// answer came. Over a handle, where a missing right looks like silence, it does nothing and returns
// nil.
func (s *Store) CheckRights(ctx context.Context, key string) error {
	b, ok := s.cells.(rightsChecker)
	if !ok {
		return nil
	}
	if err := checkKey(key); err != nil {
		return err
	}
	_, err := abandon.Run(ctx, s.calls, func() (struct{}, error) {
		return struct{}{}, b.checkRights(ctx, key)
	}, abandon.NoUndo)
	if err != nil {
		return fmt.Errorf("natskv: check the right to write %s in bucket %s: %w", key, s.cells.bucket(), err)
	}
	return nil
}

// rightsChecker is implemented by cells that can detect a missing right.
type rightsChecker interface {
	checkRights(ctx context.Context, key string) error
}

func (b *bucket) checkRights(ctx context.Context, key string) error {
	_, err := b.request(ctx, &nats.Msg{Subject: b.sendTo + key, Header: nats.Header{
		jetstream.ExpectedStreamHeader:      {b.stream},
		jetstream.ExpectedLastSubjSeqHeader: {strconv.FormatUint(unreachable, 10)},
		"KV-Operation":                      {"DEL"},
	}}, connection.Write)
	return err // an answer refuses the write, and shows the right
}

// ErrTwoClusters means that the connection has come to another bucket of the same name. That bucket
// already existed while the known one was in use, so the known bucket was not deleted and
// recreated. Either the servers in the URL belong to two clusters, or an older bucket was put back.
// The store reads and writes nothing there, since another candidate may lead by the other bucket.
var ErrTwoClusters = identity.ErrTwoClusters

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
