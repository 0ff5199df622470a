package election

import (
	"log/slog"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/natskv"
)

// Option changes how a candidate takes part. Those from WithLease on are not
// nats-kv-leader-elect's.
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

	// Read from the handle.
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

// OnWon is called when this candidate was elected. IsLeader is true already within.
func OnWon(cb func()) Option {
	return func(o *options) { set(&o.onWon, cb) }
}

// OnLost is called once after each OnWon, when leadership has ended or should: the lease has
// expired, a hand-over was requested, or Start is to end. In the last two cases the lease is kept
// for as long as this takes, 10 s at most, and no other candidate is elected before it has
// returned. In the first case no other candidate's OnWon is called for a tenth of a lease. IsLeader
// is false within.
func OnLost(cb func()) Option {
	return func(o *options) { set(&o.onLost, cb) }
}

// OnCampaign is called with LeaderState after each renewal, and with CandidateState as long as this
// candidate does not lead: at the beginning, and then each 2.25 leases, which is 75 % of the TTL,
// or at the intervals of WithBackoff. Nothing is asked of the server on these occasions.
func OnCampaign(cb func(s State)) Option {
	return func(o *options) {
		if cb != nil {
			o.onCampaign = cb
		}
	}
}

// WithBackoff makes this candidate campaign only at the intervals of bo, as long as the last leader
// has not released its lease: one that crashed, or that the server could not be reached from. The
// n-th interval, from 0, is bo.Duration(n), at least 10 ms; it is counted from when this candidate
// started, or led last. So the last leader comes first. Without it, and after a release, a
// candidate claims as soon as it may.
func WithBackoff(bo Backoff) Option {
	return func(o *options) { o.backoff = bo }
}

// WithoutSplay has the candidate campaign at once, where otherwise it waits for a random time of up
// to 5 s after Start.
func WithoutSplay() Option {
	return func(o *options) { o.noSplay = true }
}

// WithDebug calls cb with progress messages, for a log. It is called from several goroutines, also
// while a callback is.
func WithDebug(cb func(format string, a ...any)) Option {
	return func(o *options) {
		if cb != nil {
			o.debug = cb
		}
	}
}

// WithLease sets the lease, instead of to a third of the bucket's TTL, or to 15 s where it has
// none: whole milliseconds, from 500 ms to 1 h, and at most a third of the TTL if there is one.
func WithLease(d time.Duration) Option {
	return func(o *options) { o.lease = d }
}

// OnError is called with each failure while the election goes on: a store that fails, leadership
// that was lost, a value that is not a record, a bucket with unsafe settings. errors.Is finds the
// errors of package tenure and of the client. It is called from several goroutines, also while a
// callback is.
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

// Migrating shares the key with candidates of nats-kv-leader-elect while they are replaced one by
// one. It is mixed.Migrating for a handle, which states the guarantees during that time.
func Migrating() Option {
	return func(o *options) { o.migrating = true }
}

// WithStore holds the election in a store of the same bucket that natskv.Open has opened, or in any
// other, instead of over the handle, which then tells the TTL alone and may be nil. Several
// elections may share one; it stays the caller's to close.
func WithStore(s driver.Store) Option {
	return func(o *options) { o.store = s }
}

// Configure changes the settings of the election last, where there is no option, such as for
// Metadata, StopWithin or OnEvent.
func Configure(f func(*tenure.Config)) Option {
	return func(o *options) { o.configure = f }
}

func set(to *func(), cb func()) {
	if cb != nil {
		*to = cb
	}
}
