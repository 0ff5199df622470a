package connection

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/tenure-go/tenure/driver"
)

const (
	// subscribeWithin bounds the wait for a refusal of a subscription.
	subscribeWithin = 2 * time.Second
	// The limits of the messages that wait for the handler of a subscription.
	pendingMessages = 1024
	pendingBytes    = 1 << 20
	// The limits of the answers to one question, which anyone can send.
	maxAnswers     = 10_000
	maxAnswerBytes = 16 << 20
)

// Subscribe calls the handler for each message to the subject. Without a connection the library
// subscribes later. If the server refuses the subscription, the error wraps driver.ErrDenied.
func (c *Conn) Subscribe(ctx context.Context, subject string, handle nats.MsgHandler) (*nats.Subscription, error) {
	before := c.nc.LastError()
	sub, err := c.nc.Subscribe(subject, handle)
	if err != nil {
		return nil, err
	}
	// It fails only if the subscription has ended.
	_ = sub.SetPendingLimits(pendingMessages, pendingBytes)
	ctx, cancel := context.WithTimeout(ctx, subscribeWithin)
	defer cancel()
	if c.nc.FlushWithContext(ctx) != nil {
		return sub, nil // a refusal may still come, but nothing waits for it
	}
	if err := c.nc.LastError(); err != before && refusesSubscription(err, subject) { //nolint:errorlint // the same event, not one of its kind
		_ = sub.Unsubscribe()
		return nil, fmt.Errorf("%w: the user may not subscribe to %s: grant subscribe on it", driver.ErrDenied, subject)
	}
	return sub, nil
}

func refusesSubscription(err error, subject string) bool {
	return isPermission(err) && strings.Contains(err.Error(), fmt.Sprintf("Subscription to %q", subject))
}

// Ask publishes one message and returns all answers that come within the given time. It returns
// none at once if no client has subscribed to the subject. The error wraps driver.ErrDenied if a
// right is missing, and is ErrOffline without a connection.
func (c *Conn) Ask(ctx context.Context, subject string, body []byte, within time.Duration) ([]*nats.Msg, error) {
	if err := c.supervisor.explain(online(c.nc)); err != nil {
		return nil, err
	}
	bounded, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	var all []*nats.Msg
	err := c.Monitored(bounded, func(ctx context.Context) (err error) {
		all, err = c.collect(ctx, subject, body)
		return err
	}, subject)
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		err = nil // the time is over
	}
	return all, err
}

// collect returns the answers that come until the context ends.
func (c *Conn) collect(ctx context.Context, subject string, body []byte) (all []*nats.Msg, err error) {
	inbox := c.nc.NewInbox()
	sub, err := c.nc.SubscribeSync(inbox)
	if err != nil {
		return nil, err
	}
	defer func() { _ = sub.Unsubscribe() }()
	if err := c.nc.PublishRequest(subject, inbox, body); err != nil {
		return nil, err
	}
	for size := 0; len(all) < maxAnswers && size < maxAnswerBytes; {
		m, err := sub.NextMsgWithContext(ctx)
		switch {
		case errors.Is(err, nats.ErrNoResponders):
			return nil, nil
		case err != nil:
			return all, err
		}
		all, size = append(all, m), size+len(m.Data)
	}
	return all, nil
}
