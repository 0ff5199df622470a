package election

import (
	"log/slog"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/natskv"
)

// Option changes how a candidate takes part. nats-kv-leader-elect does not have WithLease, OnError,
// WithLogger, Migrating, WithStore and Configure.
type Option func(o *options)

type options struct {
	onWon, onLost func()
	onCampaign    func(State)
	backoff       Backoff
	noSplay       bool
	debug         func(format string, a ...any)

	lease     time.Duration
	onError   func(error)
	logger    *slog.Logger
	migrating bool
	store     driver.Store
	configure func(*tenure.Config)

	// The following are read from the handle.
	bucket string
	ttl    time.Duration // 0: none
	open   func(...natskv.Option) driver.Store
}

func settle(opts []Option) options {
	o := options{
		onWon: func() {}, onLost: func() {}, onCampaign: func(State) {}, onError: func(error) {},
		debug: func(string, ...any) {},
	}
	for _, opt := range opts {
		opt(&o)
	}
	return o
}

// OnWon sets a function that is called when this candidate was elected. During the call IsLeader is
// true.
func OnWon(cb func()) Option {
	return func(o *options) { set(&o.onWon, cb) }
}

// OnLost sets a function that is called once after each OnWon, when the lease has expired, a
// hand-over was requested, or Start should end. In the last two cases the lease is renewed until
// the function has returned, but for at most 10 s, and no other candidate is elected before it
// returns. If the lease has expired, no other candidate's OnWon is called for a tenth of a lease.
// During the call IsLeader is false.
func OnLost(cb func()) Option {
	return func(o *options) { set(&o.onLost, cb) }
}

// OnCampaign sets a function that is called with LeaderState after each renewal. While this
// candidate does not lead, it is called with CandidateState: at the beginning, and then every 2.25
// leases, which is 75 % of the TTL, or at the intervals of WithBackoff. No request is sent for
// these calls.
func OnCampaign(cb func(s State)) Option {
	return func(o *options) {
		if cb != nil {
			o.onCampaign = cb
		}
	}
}

// WithBackoff makes this candidate campaign only at the intervals of bo after a leader that did not
// release its lease, because it crashed or could not reach the server. The n-th interval, from 0,
// is bo.Duration(n), at least 10 ms; n is counted from when this candidate started, or led last. So
// the last leader has the shortest intervals, and is elected first. Without WithBackoff, and after
// a release, a candidate claims as soon as it may.
func WithBackoff(bo Backoff) Option {
	return func(o *options) { o.backoff = bo }
}

// WithoutSplay makes the candidate campaign at once after Start. Without it the candidate first
// waits for a random time of up to 5 s.
func WithoutSplay() Option {
	return func(o *options) { o.noSplay = true }
}

// WithDebug sets a function that is called with messages for a log. It is called from several
// goroutines, also while another callback is running.
func WithDebug(cb func(format string, a ...any)) Option {
	return func(o *options) {
		if cb != nil {
			o.debug = cb
		}
	}
}

// WithLease sets the lease: whole milliseconds, from 500 ms to 1 h, and at most a third of the
// bucket's TTL if it has one. The default is a third of the TTL, or 15 s without a TTL.
func WithLease(d time.Duration) Option {
	return func(o *options) { o.lease = d }
}

// OnError sets a function that is called with each failure while the election goes on: a store that
// fails, leadership that was lost, a value that is not a record, a bucket with unsafe settings. Use
// errors.Is to find the errors of package tenure and of the client. The function is called from
// several goroutines, also while another callback is running.
func OnError(cb func(error)) Option {
	return func(o *options) {
		if cb != nil {
			o.onError = cb
		}
	}
}

// WithLogger logs each event.
func WithLogger(l *slog.Logger) Option {
	return func(o *options) { o.logger = l }
}

// Migrating lets candidates of nats-kv-leader-elect share the key while they are replaced one by
// one. It is mixed.Migrating for a handle; the documentation there states the guarantees during
// that time.
func Migrating() Option {
	return func(o *options) { o.migrating = true }
}

// WithStore holds the election in a store: one that natskv.Open has opened over the same bucket, or
// any other. The handle then serves only to read the TTL, and may be nil. Several elections may
// share a store, and the caller must close it.
func WithStore(s driver.Store) Option {
	return func(o *options) { o.store = s }
}

// Configure sets a function that is called with the finished settings of the election, and may
// change them. Use it for settings without an option, such as Metadata, StopWithin or OnEvent.
func Configure(f func(*tenure.Config)) Option {
	return func(o *options) { o.configure = f }
}

func set(to *func(), cb func()) {
	if cb != nil {
		*to = cb
	}
}
