package fenced

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/tenure-go/tenure/driver"
)

// Errors that callers branch on.
var (
	// ErrFenced: the server refused the message, because the fence is another term's; it is not
	// stored and never will be. With tenure.ErrLost, a term of a higher token has the fence, and
	// this leader is deposed; or the election's store was lost, and the text says how to recover.
	// Without it, another user has the same fence: another election, or a leader with the same
	// token.
	ErrFenced = errors.New("fenced: the fence is another term's")
	// ErrUnknown: the message was sent and it is not known whether it is stored, or will be. It is
	// decided at the latest when the next term's Open has returned nil.
	ErrUnknown = errors.New("fenced: it is not known whether the message was stored")
	// ErrUnfit: the fence cannot be kept in this stream, or its server is too old to check it. The
	// error names the reason and the remedy.
	ErrUnfit = errors.New("fenced: the stream cannot be fenced")
	// ErrHeader: the message has a header with which it cannot be fenced.
	ErrHeader = errors.New("fenced: the header cannot be used in a fenced message")
)

// errBusy: a replicated stream gives no decision while another message is on its way through the
// same lane, or the same message is.
var errBusy = errors.New("another message is on its way")

// movedError: a server has refused, because the lane's last message is not the expected one.
type movedError struct {
	// the sequence of the present one, 0 if there is none or the server does not give it
	last uint64
	why  error
}

func (e *movedError) Error() string { return e.why.Error() }
func (e *movedError) Unwrap() error { return e.why }

// errOffline is the reason for a request that was not sent. The library would send it after it has
// connected again.
var errOffline = errors.New("not connected to a server")

// errLost ends a request whose connection is gone. The library would let it wait for an answer that
// cannot arrive.
var errLost = errors.New("the connection was lost before the answer came")

// errRemoved: a message of the fence was gone when it had been acknowledged.
var errRemoved = errors.New("the stream removes messages of the fence as soon as they are stored")

// codeSameIDBusy is a replicated stream's answer to a message while another of the same Nats-Msg-Id
// is on its way.
const codeSameIDBusy jetstream.ErrorCode = 10158

// Refusals that depend on the server's stored state, which may differ on another server.
const (
	codeWrongLastID      jetstream.ErrorCode = 10070
	codeBrokenCounter    jetstream.ErrorCode = 10172
	codeInvalidScheduler jetstream.ErrorCode = 10212
)

// stateful reports whether a refusal is valid only for the server that sent it.
func stateful(err error) bool {
	codes := []jetstream.ErrorCode{codeWrongLastID, codeBrokenCounter, codeInvalidScheduler}
	var api *jetstream.APIError
	return errors.As(err, &api) && slices.Contains(codes, api.ErrorCode)
}

// answer is the server's answer to a publish.
type answer struct {
	Error *jetstream.APIError `json:"error"`
	jetstream.PubAck
}

// acknowledged reads the answer to a publish. The servers' errors of the 400s are refusals. The
// others do not exclude that a replica has stored the message.
func acknowledged(m *nats.Msg, err error) (*jetstream.PubAck, error) {
	switch {
	case errors.Is(err, nats.ErrNoResponders), errors.Is(err, errOffline), errors.Is(err, driver.ErrDenied):
		return nil, err
	case err != nil:
		return nil, fmt.Errorf("%w (%w)", ErrUnknown, err)
	}
	var a answer
	if err := json.Unmarshal(m.Data, &a); err != nil {
		return nil, fmt.Errorf("%w: an answer that cannot be understood (%w)", ErrUnknown, err)
	}
	switch {
	case a.Error == nil && a.Sequence == 0:
		return nil, fmt.Errorf("%w: the server acknowledged nothing", ErrUnknown)
	case a.Error == nil:
		return &a.PubAck, nil
	case a.Error.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequence:
		moved := &movedError{why: a.Error}
		_, _ = fmt.Sscanf(a.Error.Description, "wrong last sequence: %d", &moved.last)
		return nil, moved
	case a.Error.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequenceConstant, a.Error.ErrorCode == codeSameIDBusy:
		return nil, fmt.Errorf("%w (%w)", errBusy, a.Error)
	case a.Error.Code >= http.StatusInternalServerError:
		return nil, fmt.Errorf("%w (%w)", ErrUnknown, a.Error)
	}
	return nil, fmt.Errorf("the server refused: %w", a.Error)
}

// ended replaces the end of a context by its cause.
func ended(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil && errors.Is(err, ctx.Err()) {
		return cause
	}
	return err
}

// explain adds that the term is over, if it is and err does not include that yet.
func explain(t driver.Term, err error) error {
	if err == nil || errors.Is(err, driver.ErrLost) {
		return err
	}
	if lost := t.Err(); lost != nil {
		return fmt.Errorf("%w (%w)", err, lost)
	}
	return err
}
