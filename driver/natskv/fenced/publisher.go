package fenced

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/tenure-go/tenure/driver"
)

// rollupHeader makes a message replace those before it on its subject.
const rollupHeader = "Nats-Rollup"

// Publisher publishes to one stream for one term of an election. Its methods may be called
// concurrently. It does not need to be closed.
type Publisher struct {
	term   driver.Term
	wire   wire
	stream string
	fence  string
	need   time.Duration // of the lease, for each message
	born   time.Time
	rolls  bool // a message of the fence may replace the one before
	ttls   bool // and may say that it does not expire
	// replicated: for a moment two servers may believe that they lead the stream, and both get a
	// message.
	replicated bool

	lanes     [width]*lane
	free      chan *lane
	taking    chan struct{} // full while a call takes the fence back
	beginning uint64
}

// Begin returns a sequence of the stream: all messages of earlier terms stand before it, and all
// messages of this Publisher after it. A new leader that reads the stream up to it knows all that
// the earlier ones did.
func (p *Publisher) Begin() uint64 { return p.beginning }

// Publish sends one message and waits for the stream's acknowledgment. It sends a copy, which
// carries the token in a header; it ignores the message's reply subject. Up to 8 calls go on at the
// same time, more wait for their turn. Without a deadline in the context it gives up after 5 s. It
// checks the lease by itself: it needs no Term.Do.
//
// Nil means that the message is stored. If the acknowledgment says Duplicate, a message of the same
// Nats-Msg-Id was stored before, perhaps by another term. Otherwise the message is not stored and
// never will be, except where the error wraps ErrUnknown. Errors wrap tenure.ErrLost if the term is
// over; tenure.ErrTooLate if too little is left of the lease; ErrFenced; ErrUnknown; ErrHeader;
// ErrUnfit if the fence had to be taken back and cannot be kept (the stream was recreated, or the
// account maps its subjects by now); driver.ErrDenied and the subject; jetstream.APIError if the
// server refuses for another reason; nats.ErrNoResponders if the stream has no leader now or does
// not listen on the subject; or ctx's cause.
func (p *Publisher) Publish(ctx context.Context, m *nats.Msg) (*jetstream.PubAck, error) {
	if err := p.usable(m); err != nil {
		return nil, err
	}
	ctx, cancel := bounded(ctx)
	defer cancel()
	var ack *jetstream.PubAck
	err := p.term.Do(ctx, p.need, func(ctx context.Context) (err error) {
		select {
		case l := <-p.free:
			defer func() { p.free <- l }()
			ack, err = p.pass(ctx, l, p.copied(m))
			return err
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	})
	if err != nil {
		return nil, explain(p.term, fmt.Errorf("fenced: %s: %w", m.Subject, err))
	}
	if m.Header.Get(jetstream.MsgIDHeader) == "" {
		ack.Duplicate = false
	}
	return ack, nil
}

// copied returns the message to send. With an id it can be sent to a replicated stream again.
func (p *Publisher) copied(m *nats.Msg) *nats.Msg {
	c := stamped(m, p.term.Token())
	c.Header.Set(jetstream.ExpectedStreamHeader, p.stream)
	if p.replicated && c.Header.Get(jetstream.MsgIDHeader) == "" {
		c.Header.Set(jetstream.MsgIDHeader, rand.Text())
	}
	return c
}

// foreign are headers that replace the fence's, or make the server publish at another time, when it
// checks no fence.
var foreign = []string{jetstream.ExpectedLastSubjSeqHeader, jetstream.ExpectedLastSubjSeqSubjHeader, jetstream.ScheduleHeader, "Nats-Batch-Id"}

// usable refuses headers that defeat the fence, also a roll-up of all, which removes it. Each
// replica of a stream takes the refusal of a last id for an error in its log from which it cannot
// go on.
func (p *Publisher) usable(m *nats.Msg) error {
	for name, values := range m.Header {
		if p.replicated && strings.EqualFold(name, jetstream.ExpectedLastMsgIDHeader) {
			return fmt.Errorf("%w: %s: leave it out: a replicated stream stops for good when its servers refuse a message "+
				"because of this header (seen with nats-server 2.15.2)", ErrHeader, name)
		}
		if strings.EqualFold(name, rollupHeader) && slices.ContainsFunc(values, rollsAll) {
			return fmt.Errorf("%w: %s: the value all removes the fence too: use sub, which rolls up single subjects", ErrHeader, name)
		}
		for _, f := range foreign {
			if strings.EqualFold(name, f) {
				return fmt.Errorf("%w: %s", ErrHeader, name)
			}
		}
	}
	return nil
}

func rollsAll(value string) bool { return strings.EqualFold(strings.TrimSpace(value), "all") }

// checkLease returns nil if enough of the lease is left.
func (p *Publisher) checkLease() error {
	return p.term.Do(context.Background(), p.need, func(context.Context) error { return nil })
}

// pass sends a message through a lane. It repeats that while the answer is only that another
// message is on its way, or that the lane's last message is not the expected one. The latter is the
// end of a deposed leader. But the message may have expired or been purged, and then a leader whose
// lease is valid takes the fence back.
func (p *Publisher) pass(ctx context.Context, l *lane, m *nats.Msg) (*jetstream.PubAck, error) {
	held := l.sequence.Load()
	if held == 0 { // as a condition it would come true where there is no fence
		var err error
		if held, err = p.retake(ctx, l, 0); err != nil {
			return nil, err
		}
	}
	if err := p.checkLease(); err != nil {
		return nil, err
	}
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		expect(m.Header, l.subject, held)
		ack, err := acknowledged(p.wire.request(ctx, m))
		var moved *movedError
		switch {
		case err == nil:
			return ack, nil
		case errors.As(err, &moved):
			var final error
			if held, final = p.refused(ctx, l, held, m, moved); final != nil {
				return nil, final
			}
		case !errors.Is(err, errBusy) && pause == firstPause && !stateful(err):
			return nil, err
		// An earlier send may have reached another server that stores it.
		case !errors.Is(err, errBusy):
			return nil, p.doubt(err)
		}
		if !sleep(ctx, pause) {
			return nil, p.doubt(gaveUp(ctx, err))
		}
		if err := p.checkLease(); err != nil {
			return nil, p.doubt(err)
		}
	}
}

// refused finds out why a message was refused that was sent under the condition of a sequence, and
// takes the fence back if it has gone. It returns the sequence for the next send, also where the
// answer came from a server that does not know the newer term's fence yet. Only a server that knows
// it can confirm that the message is not stored: it has all that stands before the fence, and would
// know the message's id. With a condition of the caller's own, this does not hold: the sequence in
// the answer may then be the last one of the stream, including messages that are only proposed.
func (p *Publisher) refused(
	ctx context.Context, l *lane, held uint64, m *nats.Msg, moved *movedError,
) (uint64, error) {
	found, own, err := p.look(ctx, l.subject)
	conditional := m.Header.Get(jetstream.ExpectedLastSeqHeader) != ""
	var taken *takenError
	switch {
	case errors.As(err, &taken) && moved.last < taken.at:
		return held, nil
	case errors.As(err, &taken) && !conditional:
		return 0, err
	case err != nil:
		return 0, p.doubt(err)
	case own && found == held && conditional:
		return 0, p.doubt(fmt.Errorf("the server refused, and not for the fence: %w", moved.why))
	case own && found == held:
		return held, nil
	}
	if held, err = p.retake(ctx, l, held); err != nil {
		return 0, p.doubt(err)
	}
	return held, nil
}

// retake takes the whole fence back when the lane is no longer held under a sequence, and returns
// the new one. A leader that took back one lane only would leave the others to an older leader
// whose clocks stood still. That one gets nothing as long as a newer term has a single lane.
func (p *Publisher) retake(ctx context.Context, l *lane, held uint64) (uint64, error) {
	select {
	case p.taking <- struct{}{}:
		defer func() { <-p.taking }()
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	}
	if now := l.sequence.Load(); now != held && now != 0 {
		return now, nil // another call has taken it back since
	}
	if err := p.same(ctx); err != nil {
		return 0, err
	}
	p.hold([width]uint64{}) // until all is taken, and it is known that it is in the same stream
	sequences, err := p.takeAll(ctx)
	if err == nil {
		err = p.same(ctx)
	}
	if err != nil {
		return 0, err
	}
	p.hold(sequences)
	return l.sequence.Load(), nil
}

// doubt adds that another server may have stored a message that one has not accepted.
func (p *Publisher) doubt(err error) error {
	if !p.replicated {
		return err
	}
	return fmt.Errorf("%w (%w)", ErrUnknown, err)
}

const (
	// Header is the name of the header that carries the fencing token of the term, in decimal
	// digits.
	Header = "Tenure-Token"
	// FenceHeader is the name of the header that only messages of the fence have, with the
	// election's name.
	FenceHeader = "Tenure-Fence"
	// holderHeader distinguishes two leaders that, by mistake, have the same token.
	holderHeader = "Tenure-Holder"
)

// holder identifies this process.
var holder = rand.Text()

// Token returns the fencing token of the term that wrote a message with these headers, and false if
// they hold none.
func Token(h nats.Header) (token uint64, ok bool) {
	token, err := strconv.ParseUint(h.Get(Header), 10, 64)
	return token, err == nil
}

// IsFence reports whether a message with these headers belongs to the fence. Consumers should
// ignore such messages. They stand in the stream between the messages of two terms.
func IsFence(h nats.Header) bool { return h.Get(FenceHeader) != "" }

// stamped returns a copy that carries the token.
func stamped(m *nats.Msg, token uint64) *nats.Msg {
	c := &nats.Msg{Subject: m.Subject, Header: maps.Clone(m.Header), Data: m.Data}
	if c.Header == nil {
		c.Header = nats.Header{}
	}
	c.Header.Set(Header, strconv.FormatUint(token, 10))
	return c
}
