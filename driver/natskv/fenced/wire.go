package fenced

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/tenure-go/tenure/driver/abandon"
)

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
	api := jetstream.DefaultAPIPrefix
	switch o := js.Options(); {
	case o.Domain != "":
		api = "$JS." + o.Domain + ".API."
	case o.APIPrefix != "":
		api = strings.TrimSuffix(o.APIPrefix, ".") + "."
	}
	return wire{nc: js.Conn(), api: api, calls: &abandon.Calls{}}
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
