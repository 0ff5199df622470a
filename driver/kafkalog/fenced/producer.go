// Package fenced writes records to Kafka that the brokers refuse once another leader has taken
// over. Use it if a leader's work is to write to Kafka, and a late write of an earlier leader would
// do harm.
//
//	connection := []kgo.Opt{kgo.SeedBrokers("kafka-1:9092"), kgo.DefaultProduceTopic("payments")}
//	p, err := fenced.Open(ctx, term, connection)
//	...
//	err = p.Produce(ctx, records...)
//
// A lease cannot stop a process that was frozen between its check of the lease and its write.
// Transactions of Kafka can: brokers hold one epoch for each transactional.id, which is the
// election's name here. Opening a producer raises the epoch and aborts open transactions. From then
// on, everything with an older epoch is refused, record or commit, however late it arrives. Any
// store can hold the election.
//
// # What is guaranteed
//
//   - In each partition every record committed by an older term stands before every one of a newer
//     term.
//   - When Open has returned nil, the earlier terms have committed everything that they ever will.
//     A new leader that reads committed records up to the end then knows all that they did.
//   - A call of Produce is one transaction: readers of committed records see all its records, in
//     all partitions, or none.
//   - An error means that nothing was or will be committed, except for ErrUnknown, which means that
//     this is not known.
//   - A deposed leader does not write under an epoch that it got too late, unless all of its clocks
//     stood still: see below.
//
// This is for readers with isolation.level read_committed
// (kgo.FetchIsolationLevel(kgo.ReadCommitted())). Others see aborted records as well, but these too
// stand before those of newer terms. docs/adr/0010-fenced-writes.md shows which order brokers keep.
//
// A commit that is on its way when the lease ends may land later, if it does so before the next
// leader's Open. So records of the old term may become visible while a new leader exists that has
// not opened its producer yet: it opens first, then reads, then works.
//
// # Which leader obtains a producer, and when
//
// The last leader that asked has the epoch. A leader asks only while enough of its lease is left,
// and checks the lease again after the answer and before each transaction and each commit. A
// request that a deposed leader sent in time, but that arrives after the new leader's, takes the
// epoch from the new one all the same. The old one sees that its lease is over and does nothing
// with the epoch. The new one is refused at its next write, and nothing of that write is committed.
// As its lease is valid, it asks again and repeats the transaction, within the same call of Produce
// (or returns ErrUnknown, if the brokers were about to abort when it sent the commit). No producer
// asks in the background, and a member that does not lead never asks. One leader does so at most
// three times a minute; after that Produce returns ErrFenced. Two programs that by mistake share a
// transactional.id thus stop with an error, and do not abort each other endlessly.
//
// # What is not guaranteed
//
// The check after the answer uses this process's clock. All its clocks may stand still (a virtual
// machine frozen, then resumed) while its request for an epoch overtakes the next leader's. Then it
// does not notice, and writes as if it led. The order is broken then, and the token shows it: each
// record carries it in the header tenure-token, and readers may skip records whose token is lower
// than one they have seen in the partition. Any other pause, in any other place, is covered.
//
// There is also no order between writes through a Producer and those by other means, and nothing is
// exactly once: a caller that repeats a call after ErrUnknown may write twice. Offsets of consumer
// groups cannot be committed in the same transaction.
//
// # Rights
//
// Write on the transactional id, and Write on the topics. Describe is needed for both; Kafka grants
// it together with Write. A missing right comes back at once as driver.ErrDenied, with its name.
//
// # What it costs
//
// A client and its connections for each term, and requests for each write. On three brokers that
// shared two busy cores (go test -tags integration -run '^$' -bench RealFenced ./test/kafka) Open
// took 28 ms at the median and a transaction of one record 33 ms, or 59 ms right after another. Nil
// from Produce means that the commit is decided; readers see the records a few milliseconds later,
// and a transaction that follows at once waits for that.
//
// # Limits
//
// Kafka 2.5 or newer, better 4.0 with transaction.version 2, where brokers themselves make sure
// that no late record of an aborted transaction is appended after it. An open transaction delays
// readers of committed records, until the next Open, Close, or kgo.TransactionTimeout, 40 s if not
// set. Brokers forget idle ids after a week; the next write is then refused and repeated as above.
package fenced

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/kafkalog/internal/broker"
	"github.com/twmb/franz-go/pkg/kgo"
)

// Open obtains the producer of a term, over a client of its own with the options given: those of a
// connection, such as kgo.SeedBrokers, kgo.DialTLSConfig and kgo.SASL, and those of a producer,
// such as kgo.DefaultProduceTopic, kgo.ProducerBatchCompression, kgo.RecordPartitioner and
// kgo.TransactionTimeout. Options of consumer groups, and kgo.TransactionalID, are refused.
//
// When it returns nil, the producers of all earlier terms are fenced, and their open transactions
// are aborted, in all partitions. A reader of committed records then finds, up to the end, all
// records of earlier terms that there will ever be. Open waits for that as long as ctx and the term
// last. An error of the network, as while the coordinator of the transactional id is down, may be
// over when Open is called again.
//
// Open one Producer for a term, since a second one fences the first, and close it. Errors are as
// for Produce, and there are those of wrong options.
func Open(ctx context.Context, t driver.Term, connection []kgo.Opt, opts ...Option) (*Producer, error) {
	set, err := settle(t, opts)
	if err != nil {
		return nil, fmt.Errorf("fenced: %w", err)
	}
	p := &Producer{term: t, connection: connection, set: set, turn: make(chan struct{}, 1), leaving: make(chan struct{})}
	close(p.leaving)
	p.closing, p.close = context.WithCancel(context.Background())
	if err := t.Do(ctx, set.need, p.first); err != nil {
		_ = p.Close()
		return nil, explain(t, fmt.Errorf("fenced: open: %w", err))
	}
	return p, nil
}

// first sends a broker a first request before all others, because the client repeats failed
// requests for a while, including the log-in.
func (p *Producer) first(ctx context.Context) error {
	client, err := broker.Connect(p.connection)
	if err != nil {
		return fmt.Errorf("the client's options: %w", err)
	}
	defer client.Close()
	if err := client.Ping(ctx); err != nil {
		return classify(ended(ctx, err))
	}
	return p.obtain(ctx)
}

// connect makes a client. Options that the user may change come before the user's options, and all
// others after them.
func connect(connection []kgo.Opt, id string, hook kgo.Hook) (*kgo.Client, error) {
	opts := []kgo.Opt{
		kgo.DialTimeout(2 * time.Second),
		kgo.RequestTimeoutOverhead(5 * time.Second),
		// Until then the client looks for a moved partition at its old place.
		kgo.MetadataMinAge(100 * time.Millisecond),
		kgo.RetryBackoffFn(func(tries int) time.Duration {
			return min(time.Duration(tries)*20*time.Millisecond, 500*time.Millisecond)
		}),
	}
	opts = append(opts, connection...)
	return kgo.NewClient(append(opts,
		kgo.TransactionalID(id),
		kgo.RequiredAcks(kgo.AllISRAcks()),
		kgo.ProducerLinger(0), // a transaction has all its records at once
		kgo.WithHooks(hook),
	)...)
}

// defaultNeed is some round trips to a near cluster, and little of the shortest lease on Kafka.
const defaultNeed = 100 * time.Millisecond

// Option changes how Open makes a Producer.
type Option func(*settings)

type settings struct {
	id   string
	need time.Duration
}

// WithID sets the transactional.id; the default is the election's name. All candidates of an
// election must use the same one, and no other program may use it. If two elections on one Kafka
// cluster have the same name, give each an ID of its own.
func WithID(id string) Option { return func(s *settings) { s.id = id } }

// WithNeed sets how much of the lease must be left to obtain a producer, to begin a transaction and
// to commit it: 100 ms if not set. With less the call returns tenure.ErrTooLate. A leader that
// renews in time always has three fifths of its lease left.
func WithNeed(d time.Duration) Option { return func(s *settings) { s.need = d } }

func settle(t driver.Term, opts []Option) (settings, error) {
	s := settings{id: t.Election(), need: defaultNeed}
	for _, o := range opts {
		o(&s)
	}
	var bad []error
	if s.id == "" {
		bad = append(bad, errors.New("the transactional id is empty"))
	}
	if s.need < 0 {
		bad = append(bad, fmt.Errorf("the need is %v; it must not be negative", s.need))
	}
	return s, errors.Join(bad...)
}

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
