package fenced

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/tenure-go/tenure/driver"
	"github.com/twmb/franz-go/pkg/kerr"
)

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
