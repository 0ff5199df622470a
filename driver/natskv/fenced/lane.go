package fenced

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/abandon"
	"github.com/tenure-go/tenure/driver/natskv/internal/connection"
)

// width is the number of a fence's subjects, and so of messages that can be on their way at a time:
// a replicated stream lets one pass on each condition, and refuses others until it is stored. All
// terms must have the same subjects, so this is not an option.
const width = 8

// lane is a subject of the fence, with the sequence of this term's message there, or 0 while that
// is not known. The call of Publish that took it out of the Publisher's free lanes sends through
// it; the call that takes the fence back sets it.
type lane struct {
	subject  string
	sequence atomic.Uint64
}

// expect makes the server refuse a message unless the last one on the subject has this sequence.
func expect(h nats.Header, subject string, last uint64) {
	h.Set(jetstream.ExpectedLastSubjSeqSubjHeader, subject)
	h.Set(jetstream.ExpectedLastSubjSeqHeader, strconv.FormatUint(last, 10))
}

// take makes a subject of the fence this term's, unless a newer term has it, and returns the
// sequence of this term's message there. The caller checks the lease before and after.
func (p *Publisher) take(ctx context.Context, subject string) (sequence uint64, err error) {
	err = insist(ctx, func() error {
		sequence, err = p.try(ctx, subject)
		return err
	})
	return sequence, err
}

// takeAll takes all lanes, and returns the sequences of this term's messages there. With an error
// some may be taken.
func (p *Publisher) takeAll(ctx context.Context) (sequences [width]uint64, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var all sync.WaitGroup
	for i, l := range p.lanes {
		all.Go(func() {
			var err error
			if sequences[i], err = p.take(ctx, l.subject); err != nil {
				cancel(err)
			}
		})
	}
	all.Wait()
	return sequences, context.Cause(ctx)
}

// hold records that all lanes are this term's.
func (p *Publisher) hold(sequences [width]uint64) {
	for i, l := range p.lanes {
		l.sequence.Store(sequences[i])
	}
}

// try reads the last message and claims the subject from there. The next try finds a claim whose
// outcome is not known.
func (p *Publisher) try(ctx context.Context, subject string) (uint64, error) {
	last, own, err := p.read(ctx, subject)
	if err != nil || own {
		return last, err
	}
	return p.claim(ctx, subject, last)
}

// look repeats read until there is an answer.
func (p *Publisher) look(ctx context.Context, subject string) (last uint64, own bool, err error) {
	err = insist(ctx, func() error {
		last, own, err = p.read(ctx, subject)
		return err
	})
	return last, own, err
}

// read returns the sequence of the last message of a lane, or 0, and whether it is this term's. It
// returns a takenError if that message forbids a claim.
func (p *Publisher) read(ctx context.Context, subject string) (last uint64, own bool, err error) {
	found, err := p.wire.last(ctx, p.stream, subject)
	if err != nil {
		return 0, false, err
	}
	if own, err = p.judge(found, subject); err != nil {
		return 0, false, &takenError{at: found.Sequence, why: err}
	}
	return found.Sequence, own, nil
}

// takenError: a message of the fence forbids this term to take the lane.
type takenError struct {
	at  uint64 // its sequence
	why error
}

func (e *takenError) Error() string { return e.why.Error() }
func (e *takenError) Unwrap() error { return e.why }

// judge reports whether a message of the fence is this term's, and returns an error if it forbids a
// claim. An absent, older or unreadable message does not: the caller's lease is valid, so no newer
// leader has been there.
func (p *Publisher) judge(found post, subject string) (own bool, err error) {
	h := found.headers()
	token, ok := Token(h)
	switch by := h.Get(FenceHeader); {
	case !ok || by == "":
		return false, nil
	case by != p.term.Election():
		return false, fmt.Errorf("%w: %s belongs to the election %s: give each a fence of its own", ErrFenced, subject, by)
	case token > p.term.Token():
		return false, p.newer(token)
	case token < p.term.Token():
		return false, nil
	case h.Get(holderHeader) != holder:
		return false, fmt.Errorf("%w: another process has term %d too: check whether the election's store was restored to an older state", ErrFenced, token)
	}
	return true, nil
}

// newer is the error of a leader when a higher term has the fence. That term belongs to a newer
// leader only if the election's terms grow: its store may have lost them.
func (p *Publisher) newer(token uint64) error {
	ours := p.term.Token()
	err := fmt.Errorf("%w: term %d has taken it from term %d (%w: %w)",
		ErrFenced, token, ours, driver.ErrLost, driver.ErrDeposed)
	if p.term.Err() != nil {
		return err
	}
	return fmt.Errorf("%w: but the lease of term %d is valid by this machine's clocks; either they stood still, "+
		"or the election's store was lost and counts terms from below %d again; only if it was lost, stop all "+
		"leaders of the old store and then remove their fence: nats stream purge %s --subject '%s.>'",
		err, ours, token, p.stream, p.fence)
}

// claim is a compare-and-swap: a late one finds another last message and is refused. Claim reads
// the acknowledged message back, since the account may map the subject to another.
func (p *Publisher) claim(ctx context.Context, subject string, last uint64) (uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, attemptTimeout)
	defer cancel()
	m := stamped(&nats.Msg{Subject: subject}, p.term.Token())
	m.Header.Set(FenceHeader, p.term.Election())
	m.Header.Set(holderHeader, holder)
	m.Header.Set(jetstream.ExpectedStreamHeader, p.stream)
	expect(m.Header, subject, last)
	if p.rolls {
		m.Header.Set(rollupHeader, "sub")
	}
	if p.ttls {
		m.Header.Set(jetstream.MsgTTLHeader, "never")
	}
	ack, err := acknowledged(p.wire.request(ctx, m))
	if err != nil {
		return 0, err
	}
	stored, err := p.wire.at(ctx, p.stream, ack.Sequence)
	switch {
	case err != nil:
		return 0, err
	case stored.Sequence == 0: // it cannot be kept either: the next try finds what replaced it
		return 0, errRemoved
	case stored.Subject != subject:
		return 0, fmt.Errorf("%w: a message to %s was stored under %s, where no condition finds it: "+
			"exempt %s.> from the subject mappings of the account", ErrUnfit, subject, stored.Subject, p.fence)
	}
	return ack.Sequence, nil
}

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

const (
	firstPause = time.Millisecond
	lastPause  = 50 * time.Millisecond
)

// insist tries until another try cannot help, or the context ends: streams change their leaders.
func insist(ctx context.Context, try func() error) error {
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		err := try()
		if err == nil || !passing(err) {
			return err
		}
		if !sleep(ctx, pause) {
			return gaveUp(ctx, err)
		}
	}
}

// passing reports whether a later try may end differently after this error about the fence. The
// next try finds a write whose outcome is not known.
func passing(err error) bool {
	var api *jetstream.APIError
	if errors.As(err, &api) && api.Code >= http.StatusInternalServerError {
		return true
	}
	if moved := (*movedError)(nil); errors.As(err, &moved) {
		return true
	}
	for _, p := range []error{
		errBusy, errOffline, errLost, errRemoved, ErrUnknown, nats.ErrNoResponders, context.DeadlineExceeded,
	} {
		if errors.Is(err, p) {
			return true
		}
	}
	return false
}

// gaveUp returns why the context ended, with the last obstacle as text.
func gaveUp(ctx context.Context, err error) error {
	//nolint:errorlint // the errors that err wraps are about one attempt
	return fmt.Errorf("%w (at last: %v)", context.Cause(ctx), err)
}

// sleep returns false if the context ends first.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// attemptTimeout bounds a question, and a claim of the fence, which are tried again: a server that
// died does not answer.
const attemptTimeout = time.Second

// wire sends requests over the caller's connection.
type wire struct {
	nc    *nats.Conn
	api   string // prefix of the JetStream API's subjects
	calls *abandon.Calls
}

func newWire(js jetstream.JetStream) wire {
	return wire{nc: js.Conn(), api: connection.Borrow(js).API(), calls: &abandon.Calls{}}
}

// request sends one message, once, and returns the answer. It ends with the context even while the
// library holds the connection's lock, to wait for a frozen server.
func (w wire) request(ctx context.Context, m *nats.Msg) (*nats.Msg, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	answer, err := abandon.Run(ctx, w.calls, func() (*nats.Msg, error) {
		if !w.nc.IsConnected() {
			return nil, fmt.Errorf("%w (%s)", errOffline, w.nc.Status())
		}
		defer w.watchRefusal(m.Subject, cancel)()
		return w.nc.RequestMsgWithContext(ctx, m)
	}, abandon.NoUndo)
	return answer, ended(ctx, err)
}

// ask sends a question to the JetStream API.
func (w wire) ask(ctx context.Context, subject string, body []byte, into any) error {
	ctx, cancel := context.WithTimeout(ctx, attemptTimeout)
	defer cancel()
	m, err := w.request(ctx, &nats.Msg{Subject: w.api + subject, Data: body})
	if err != nil {
		return err
	}
	var refused struct {
		Error *jetstream.APIError `json:"error"`
	}
	if err := json.Unmarshal(m.Data, &refused); err != nil {
		return fmt.Errorf("an answer that cannot be understood: %w", err)
	}
	if refused.Error != nil {
		return refused.Error
	}
	return json.Unmarshal(m.Data, into)
}
