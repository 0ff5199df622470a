package natskv

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/natskv/internal/connection"
)

// CompareAndSwap is one publish under conditions that the stream's leader checks.
func (b *bucket) CompareAndSwap(ctx context.Context, key string, prev driver.Version, value []byte) (driver.Version, error) {
	header, err := b.conditions(prev)
	if err != nil {
		return "", err
	}
	return b.publish(ctx, key, header, value)
}

// markDeleted is CompareAndSwap for a value that clients of a key-value bucket should take for a
// deleted key.
func (b *bucket) markDeleted(ctx context.Context, key string, prev driver.Version, value []byte) (driver.Version, error) {
	header, err := b.conditions(prev)
	if err != nil {
		return "", err
	}
	header["KV-Operation"] = []string{"DEL"}
	return b.publish(ctx, key, header, value)
}

func (b *bucket) publish(ctx context.Context, key string, header nats.Header, value []byte) (driver.Version, error) {
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
