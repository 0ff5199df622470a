package fenced

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/tenure-go/tenure/driver"
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
