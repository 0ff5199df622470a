package fenced

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tenure-go/tenure/driver"
	"github.com/twmb/franz-go/pkg/kgo"
)

// Producer writes to Kafka for one term of an election. Its methods may be called concurrently.
type Producer struct {
	term       driver.Term
	connection []kgo.Opt
	set        settings

	closing context.Context
	close   context.CancelFunc
	turn    chan struct{} // held, by a value in the channel, by the user of the fields below

	session *session      // nil if the next call must obtain one
	leaving chan struct{} // closed when the last one that failed has gone
	fenced  bool          // the reason for its failure
	renewed renewed
}

// Produce writes the records in one transaction: readers with isolation.level read_committed see
// all of them or none. It writes copies, which carry the token in a header; the records may be used
// again. Calls take turns, so that many records in one call are far cheaper than many calls. In a
// partition, the records of one call stand in the order given.
//
// Nil means that the transaction is committed; readers see it some milliseconds later. Otherwise
// nothing is committed, except where the error wraps ErrUnknown. Errors wrap tenure.ErrLost if the
// term is over; tenure.ErrTooLate if too little is left of the lease; ErrFenced; ErrUnknown;
// driver.ErrDenied and the name of the missing right; ErrClosed; or ctx's cause. They may be the
// brokers' own, such as for a record that is too large.
func (p *Producer) Produce(ctx context.Context, records ...*kgo.Record) error {
	ctx, leave, err := p.enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	for {
		err := p.attempt(ctx, records)
		if !errors.Is(err, ErrFenced) || errors.Is(err, ErrUnknown) || errors.Is(err, errOften) || p.checkLease() != nil {
			return explain(p.term, err)
		}
	}
}

// Close ends calls that are under way, which may leave them with ErrUnknown. It aborts their open
// transaction, which takes at most 2 s, and closes the connections. It returns nil. The term goes
// on. Readers of committed records never wait for this Producer after that.
func (p *Producer) Close() error {
	p.close()
	p.turn <- struct{}{}
	defer func() { <-p.turn }()
	if p.session != nil {
		p.drop(nil)
	}
	<-p.leaving
	return nil
}

// enter waits for the turn. The context that it returns ends with ctx or with the Producer.
func (p *Producer) enter(ctx context.Context) (context.Context, func(), error) {
	select {
	case p.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, nil, context.Cause(ctx)
	case <-p.closing.Done():
		return nil, nil, ErrClosed
	}
	if p.closing.Err() != nil {
		<-p.turn
		return nil, nil, ErrClosed
	}
	ctx, cancel := context.WithCancelCause(ctx)
	forget := context.AfterFunc(p.closing, func() { cancel(ErrClosed) })
	return ctx, func() {
		forget()
		cancel(nil)
		<-p.turn
	}, nil
}

// checkLease returns nil if enough of the lease is left.
func (p *Producer) checkLease() error {
	return p.term.Do(context.Background(), p.set.need, func(context.Context) error { return nil })
}

func (p *Producer) attempt(ctx context.Context, records []*kgo.Record) error {
	return p.term.Do(ctx, p.set.need, func(ctx context.Context) error {
		if err := p.obtain(ctx); err != nil {
			return err
		}
		err := p.session.transact(ctx, stamped(records, p.term.Token()), p.checkLease)
		if err != nil {
			p.drop(err)
		}
		return err
	})
}

// obtain makes sure that there is a session. A leader that was fenced gets a new one only a few
// times: if two leaders go on taking the id from each other, neither gets anything done.
func (p *Producer) obtain(ctx context.Context) error {
	if p.session != nil {
		return nil
	}
	select {
	case <-p.leaving:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if p.fenced && !p.renewed.allow(time.Now()) {
		return errOften
	}
	s, err := begin(ctx, p.connection, p.set.id)
	if err != nil {
		p.fenced = p.fenced || errors.Is(err, ErrFenced) // so that the next attempt counts
		return err
	}
	p.session = s
	if err := p.checkLease(); err != nil {
		p.drop(err)
		return fmt.Errorf("the lease ended while the producer was obtained: %w", err)
	}
	return nil
}

// drop ends a session in the background: it may take a while.
func (p *Producer) drop(why error) {
	s, gone := p.session, make(chan struct{})
	p.session, p.leaving, p.fenced = nil, gone, errors.Is(why, ErrFenced)
	go func() {
		defer close(gone)
		s.end()
	}()
}

const (
	// renewals is how often, within renewalSpan, a leader that is fenced although it leads obtains
	// another producer.
	renewals    = 3
	renewalSpan = time.Minute
)

// renewed holds the times of the last renewals.
type renewed struct {
	at   [renewals]time.Time
	next int
}

// allow reports whether another renewal is allowed now, and counts it.
func (r *renewed) allow(now time.Time) bool {
	oldest := &r.at[r.next]
	if !oldest.IsZero() && now.Sub(*oldest) < renewalSpan {
		return false
	}
	*oldest, r.next = now, (r.next+1)%renewals
	return true
}
