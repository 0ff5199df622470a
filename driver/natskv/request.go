package natskv

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/tenure-go/tenure/driver/natskv/internal/connection"
)

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
