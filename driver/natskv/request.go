package natskv

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/tenure-go/tenure/driver"
)

const getMessage = "STREAM.MSG.GET."

// errOffline is the reason of a request that was not sent. The library would keep it and send it after it has connected
// again, long after the caller has given up.
var errOffline = errors.New("not connected to a server")

// request sends one message and returns the one answer. It never repeats.
//
// Also are subjects to which something was published for the sake of this request, before it.
func (b *bucket) request(ctx context.Context, m *nats.Msg, what task, also ...string) (*nats.Msg, error) {
	if err := b.keep.refused(online(b.nc)); err != nil {
		return nil, err
	}
	if what == writing {
		if err := b.sure(ctx); err != nil {
			return nil, err
		}
	}
	l := b.lookOut(ctx, what != writing, append([]string{m.Subject}, also...)...)
	defer l.stop()
	if len(also) == 0 { // what is more than one request may take the whole cluster's consent
		l.limitTo(b.keep.answerWithin(), &b.pulses[what])
	}
	answer, err := b.nc.RequestMsgWithContext(l.ctx, m)
	if err != nil {
		err = reason(l.ctx, err)
		b.keep.unanswered(l.began, what, err)
		return nil, err
	}
	b.pulses[what].beat()
	b.keep.answered(answer, what)
	return answer, l.late(also)
}

// reason prefers why the context ended over that it did.
func reason(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil && errors.Is(err, ctx.Err()) {
		return cause
	}
	return err
}

// online returns nil if a request can be sent now.
func online(nc *nats.Conn) error {
	switch status := nc.Status(); status {
	case nats.CONNECTED, nats.DRAINING_SUBS, nats.DRAINING_PUBS:
		return nil
	case nats.CLOSED:
		return closed(nc.LastError())
	default:
		return fmt.Errorf("%w (%s)", errOffline, status)
	}
}

// closed tells a connection that the server will not have from one that was closed.
func closed(last error) error {
	if isLogin(last) {
		return unwelcome(last)
	}
	return nats.ErrConnectionClosed
}

// isLogin reports whether an error says that the server does not know the user, or does not any more.
func isLogin(last error) bool {
	for _, auth := range []error{nats.ErrAuthorization, nats.ErrAuthExpired, nats.ErrAuthRevoked, nats.ErrAccountAuthExpired} {
		if errors.Is(last, auth) {
			return true
		}
	}
	return false
}

func unwelcome(login error) error {
	return fmt.Errorf("%w: the server refuses the credentials (%w): check them", driver.ErrDenied, login)
}

// refusable is an answer of the JetStream API.
type refusable interface{ refused() error }

// answer is what every answer of the JetStream API may hold instead of the data.
type answer struct {
	Error *jetstream.APIError `json:"error"`
}

func (a answer) refused() error {
	if a.Error == nil {
		return nil
	}
	return a.Error
}

// call asks the JetStream API and decodes the answer. It changes nothing on the server that a store depends on.
func (b *bucket) call(ctx context.Context, subject string, body []byte, into refusable, also ...string) error {
	what := asking
	if strings.HasPrefix(subject, getMessage) {
		what = reading
	}
	m, err := b.request(ctx, &nats.Msg{Subject: b.api + subject, Data: body}, what, also...)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(m.Data, into); err != nil {
		return fmt.Errorf("an answer that cannot be understood: %w", err)
	}
	return into.refused()
}

// hasCode reports whether err is the JetStream API's error of that number.
func hasCode(err error, code jetstream.ErrorCode) bool {
	var api *jetstream.APIError
	return errors.As(err, &api) && api.ErrorCode == code
}
