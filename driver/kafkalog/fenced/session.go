package fenced

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/tenure-go/tenure/driver"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// farewell is how long a session may take to abort its transaction.
const farewell = 2 * time.Second

// session is a client and the epoch of the transactional id that it was given. After a failure it
// is not used again: the client would ask for another epoch by itself, at a time of its own
// choosing.
type session struct {
	client  *kgo.Client
	commits *commits
	open    bool // the brokers may have records of a transaction, and no end was sent for it
}

// grant identifies a session for the brokers.
type grant struct {
	producer int64
	epoch    int16
}

// begin obtains a grant, which fences all earlier sessions of the transactional id and aborts their
// open transactions. The caller checks the lease before and after.
func begin(ctx context.Context, connection []kgo.Opt, id string) (*session, error) {
	counted := &commits{}
	client, err := connect(connection, id, counted)
	if err != nil {
		return nil, err
	}
	s := &session{client: client, commits: counted}
	if _, err := s.granted(ctx); err != nil {
		s.end()
		return nil, fmt.Errorf("transactional id %s: %w", id, err)
	}
	return s, nil
}

// granted returns the present grant. The brokers give a new one with the end of each transaction.
// If the client has concluded that it needs one, it asks for it here.
func (s *session) granted(ctx context.Context) (g grant, err error) {
	g.producer, g.epoch, err = s.client.ProducerID(ctx)
	return g, classify(ended(ctx, err))
}

// transact writes the records and commits them if checkLease allows it.
func (s *session) transact(ctx context.Context, records []*kgo.Record, checkLease func() error) error {
	g, err := s.granted(ctx)
	if err != nil {
		return err
	}
	if err := checkLease(); err != nil {
		return err
	}
	if err := s.client.BeginTransaction(); err != nil {
		return classify(err)
	}
	s.open = true
	if err := s.write(ctx, records); err != nil {
		err = classify(ended(ctx, err))
		s.open = !errors.Is(err, ErrFenced)
		return err
	}
	if err := s.still(ctx, g); err != nil {
		return err
	}
	if err := checkLease(); err != nil {
		return err
	}
	return s.commit(ctx)
}

// write returns when the brokers have all records, or with the reason why one of them was refused.
func (s *session) write(ctx context.Context, records []*kgo.Record) error {
	refused := make(chan error, 1)
	for _, r := range records {
		s.client.Produce(ctx, r, func(r *kgo.Record, err error) {
			if err == nil {
				return
			}
			select {
			case refused <- fmt.Errorf("topic %s: %w", r.Topic, err):
			default:
			}
		})
	}
	if err := s.client.Flush(ctx); err != nil {
		return err
	}
	select {
	case err := <-refused:
		return err
	default:
		return nil
	}
}

// still finds out whether the client has taken another grant by itself. With it the brokers aborted
// the earlier records.
func (s *session) still(ctx context.Context, before grant) error {
	now, err := s.granted(ctx)
	if err == nil && now != before {
		err = errors.New("the client has begun another transaction by itself")
	}
	return err
}

// commit ends the transaction. An answer proves that nothing is committed only if the request was
// sent once: the client repeats it when a connection breaks, and a request that was refused then
// may have been applied before.
func (s *session) commit(ctx context.Context) error {
	s.open = false
	s.commits.sent.Store(0)
	err := s.client.EndTransaction(ctx, kgo.TryCommit)
	if err == nil || errors.Is(err, kerr.OperationNotAttempted) {
		return err
	}
	err = classify(ended(ctx, err))
	if errors.Is(err, ErrFenced) && s.commits.sent.Load() == 1 {
		return err
	}
	return fmt.Errorf("%w (%w)", ErrUnknown, err)
}

// end aborts the open transaction, so that readers need not wait for its timeout, and closes the
// client.
func (s *session) end() {
	defer s.client.Close()
	if !s.open {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), farewell)
	defer cancel()
	if s.client.AbortBufferedRecords(ctx) == nil {
		// The next session's epoch, or the timeout, does the same.
		_ = s.client.EndTransaction(ctx, kgo.TryAbort)
	}
}

// commits counts how often the end of a transaction was sent, which the client repeats when a
// connection breaks.
type commits struct{ sent atomic.Int64 }

// OnBrokerWrite implements kgo.HookBrokerWrite.
func (c *commits) OnBrokerWrite(_ kgo.BrokerMetadata, key int16, _ int, _, _ time.Duration, _ error) {
	if key == kmsg.EndTxn.Int16() {
		c.sent.Add(1)
	}
}

// Errors that callers branch on.
var (
	// ErrFenced: the brokers refused the writes, because another producer was obtained under the
	// transactional id since, or the transaction outlasted its timeout. With tenure.ErrLost this
	// leader is deposed. Without it the id was taken from a leader whose lease is valid, again and
	// again: another program uses it.
	ErrFenced = errors.New("fenced: another producer has taken over")
	// ErrUnknown: the commit was sent and its outcome is not known. It is decided at the latest
	// when a later Produce or Open under the same transactional id has returned nil; readers see
	// then whether the records are there.
	ErrUnknown = errors.New("fenced: it is not known whether the records were committed")
	// ErrClosed: the Producer was closed.
	ErrClosed = errors.New("fenced: the producer is closed")
)

// errOften ends the attempts of a leader that is fenced although it leads.
var errOften = fmt.Errorf("%w %d times within %v, though the lease is valid: find the other program that uses the transactional id",
	ErrFenced, renewals, renewalSpan)

// fencings are the answers to a producer after which another one was obtained. The third means that
// the transactional id has another producer id by now. The last one means that the transaction was
// already aborted by then, and no producer was obtained yet.
var fencings = []error{kerr.InvalidProducerEpoch, kerr.ProducerFenced, kerr.InvalidProducerIDMapping, kerr.InvalidTxnState}

// refusals are the answers that an operator must act on, with the missing right.
var refusals = []struct {
	err     error
	missing string
}{
	{kerr.TransactionalIDAuthorizationFailed, "Write on the transactional id"},
	{kerr.TopicAuthorizationFailed, "Write on the topic"},
	{kerr.ClusterAuthorizationFailed, "IdempotentWrite on the cluster"},
	{kerr.SaslAuthenticationFailed, "a user name and password that the brokers know"},
	{kerr.UnsupportedSaslMechanism, "a SASL mechanism that the brokers speak"},
	{kerr.IllegalSaslState, "a SASL mechanism that the brokers speak"},
}

// classify turns an answer of the brokers into an error of this package.
func classify(err error) error {
	if slices.ContainsFunc(fencings, func(f error) bool { return errors.Is(err, f) }) {
		return fmt.Errorf("%w (%w)", ErrFenced, err)
	}
	for _, r := range refusals {
		if errors.Is(err, r.err) {
			return fmt.Errorf("%w: missing is %s (%w)", driver.ErrDenied, r.missing, err)
		}
	}
	return err
}

// ended replaces the client's error about the end of a context by its cause.
func ended(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); err != nil && cause != nil {
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

// Header is the name of the record header that carries the fencing token of the term, in decimal
// digits.
const Header = "tenure-token"

// Token returns the fencing token of the term that wrote the record, and false if the record
// carries none.
func Token(r *kgo.Record) (token uint64, ok bool) {
	i := slices.IndexFunc(r.Headers, isToken)
	if i < 0 {
		return 0, false
	}
	token, err := strconv.ParseUint(string(r.Headers[i].Value), 10, 64)
	return token, err == nil
}

// stamped returns copies that carry the token. The client sets others of their fields, and may do
// so a second time.
func stamped(records []*kgo.Record, token uint64) []*kgo.Record {
	mark := kgo.RecordHeader{Key: Header, Value: strconv.AppendUint(nil, token, 10)}
	copies := make([]*kgo.Record, len(records))
	for i, r := range records {
		c := *r
		c.Headers = append(slices.DeleteFunc(slices.Clone(r.Headers), isToken), mark)
		copies[i] = &c
	}
	return copies
}

func isToken(h kgo.RecordHeader) bool { return h.Key == Header }
