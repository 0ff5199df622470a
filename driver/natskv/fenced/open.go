package fenced

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/tenure-go/tenure/driver"
)

// Open takes the fence of a stream for a term. The fence is a few subjects of the stream below the
// one given, such as "payments.fence" for a stream that listens on "payments.>". All candidates of
// an election must give the same one, and no other program may use it. The connection stays the
// caller's.
//
// When it returns nil, the stream has all messages of earlier terms that it will ever have, and
// they stand before [Publisher.Begin]. Opening twice in a term takes nothing away from the first
// Publisher. Without a deadline in the context it gives up after 5 s. If the work cannot begin
// without the fence, lead may return tenure.ErrDecline: then Run goes on, and another candidate may
// lead.
//
// Errors wrap tenure.ErrLost if the term is over, and ErrFenced as well if the fence showed it;
// tenure.ErrTooLate; ErrFenced alone if another election or leader uses the fence; ErrUnfit;
// jetstream.ErrStreamNotFound; driver.ErrDenied and the subject; or ctx's cause.
func Open(ctx context.Context, t driver.Term, js jetstream.JetStream, stream, fence string, opts ...Option) (*Publisher, error) {
	if err := checkNames(stream, fence); err != nil {
		return nil, err
	}
	ctx, cancel := bounded(ctx)
	defer cancel()
	p := &Publisher{
		term: t, wire: newWire(js), stream: stream, fence: fence, set: settle(opts),
		free: make(chan *lane, width), taking: make(chan struct{}, 1),
	}
	err := t.Do(ctx, p.set.need, p.begin)
	if err == nil {
		err = p.checkLease()
	}
	if err != nil {
		return nil, explain(t, fmt.Errorf("fenced: stream %s: %w", stream, err))
	}
	return p, nil
}

func checkNames(stream, fence string) error {
	if stream == "" || strings.ContainsAny(stream, ".*> \t\r\n") {
		return fmt.Errorf("fenced: %q is no name of a stream", stream)
	}
	if fence == "" || strings.ContainsAny(fence, "*>\"\\ \t\r\n") || strings.Contains("."+fence+".", "..") {
		return fmt.Errorf("fenced: %q is no subject without wildcards", fence)
	}
	return nil
}

// begin takes all lanes. Their subjects contain the stream's time of creation: a stream that was
// deleted and recreated begins its sequences again, and an old leader's condition must not come
// true there.
func (p *Publisher) begin(ctx context.Context) error {
	s, err := p.info(ctx)
	if err != nil {
		return err
	}
	if err := s.fit(p.fence); err != nil {
		return err
	}
	p.born, p.rolls, p.ttls, p.replicated = s.Created, s.rolls(), s.Config.TTLs, s.Config.Replicas > 1
	for i := range p.lanes {
		p.lanes[i] = &lane{subject: fmt.Sprintf("%s.%s.%d", p.fence, strconv.FormatInt(s.Created.UnixNano(), 36), i)}
		p.free <- p.lanes[i]
	}
	sequences, err := p.takeAll(ctx)
	if err != nil {
		return err
	}
	p.hold(sequences)
	p.beginning = slices.Max(sequences[:])
	return p.same(ctx)
}

// bounded adds a deadline to a context that has none.
func bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, ok := ctx.Deadline(); ok {
		return context.WithCancel(ctx)
	}
	return context.WithTimeoutCause(ctx, callTimeout, fmt.Errorf("no answer within %v: %w", callTimeout, context.DeadlineExceeded))
}
