// Package election is for programs that were written for nats-kv-leader-elect. It has the same
// names, over elections of Tenure. A program changes its import:
//
//	import election "github.com/tenure-go/tenure/compat/nats-kv-leader-elect"
//
//	elect, err := election.NewElection("member 1", "election", kv,
//		election.OnWon(handleBecomingLeader),
//		election.OnLost(handleLosingLeadership))
//	err = elect.Start(ctx) // blocks until stopped
//
// docs/nats-kv-leader-elect.md describes the move step by step.
//
// # The lease
//
// The lease is a third of the bucket's TTL, and the leader renews it every third of the lease. A
// candidate is elected when the last leader has released its lease, or when the candidate has
// waited for the whole lease. By its own clock the last leader stops earlier than that, by a tenth
// of the lease and a margin. So when OnWon is called, there is no other leader any more, and no
// further pause is necessary. The TTL itself decides nothing.
//
// # Callbacks
//
// Start calls OnWon, OnLost and OnCampaign in its goroutine, one at a time. It holds no lock, so
// they may call any method. A slow callback delays only other callbacks: the lease is renewed, and
// expires, independently of them. OnLost follows each OnWon, also at a shutdown, and the lease is
// released only after OnLost has returned. After a panic in a callback the lease is not released.
// If the program recovers from the panic, the lease runs out.
//
// # Differences
//
// In nats-kv-leader-elect a leader has no deadline: while an update of the key hangs, or after the
// process was frozen, it keeps leading beside the next leader. Here it stops by its own clock.
// There Stop, and IsLeader within a callback, never return; at a shutdown OnLost is not called and
// the key stays; a lost answer to a write makes a leader take its own key for another's; every
// error is swallowed; changes are found at the next campaign; and a slow callback delays the
// update. None of this happens here. Programs also notice these differences:
//
//   - OnWon is called at the election, and not three quarters of the TTL later. If it does not
//     return, the lease is renewed, and OnLost waits for it. OnLost is called before the lease is
//     released.
//   - While OnLost runs, Token is available for as long as the lease is held.
//   - OnCampaign is called after each confirmed renewal, and not before each update.
//   - WithDebug's function is called from several goroutines.
//   - State is LeaderState exactly if IsLeader is true, and UnknownState after the end. It prints
//     its name.
//   - An empty name becomes that of the host and the process.
//   - The value of the key is a record in JSON, with the name as its leaderID. A value of another
//     program is never overwritten, and OnError reports driver.Foreign.
//   - A key may have at most 512 bytes.
//   - The random wait of up to 5 s comes before the first claim, and not before the first
//     OnCampaign.
//   - A bucket without a TTL is no error. The interval of campaigns has no limits of its own: the
//     lease must leave the leader time for two attempts to renew.
//   - A back-off of 0 waits 10 ms. A back-off saves no requests, because candidates make none while
//     there is a leader. It keeps leadership where it was after an outage; after a crash the next
//     leader may lead up to one interval later.
//   - At each Start, OnError reports each unsafe setting of the bucket, and WithDebug warnings,
//     too.
//   - A tenth of the lease is reserved for the leader's work to stop: see Configure and StopWithin.
package election

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/natskv"
)

// Election is one candidate. NewElection returns an *Elector, which has further methods.
type Election interface {
	// Start takes part until ctx ends or Stop is called, and blocks until then.
	Start(ctx context.Context) error
	// Stop makes Start return soon.
	Stop()
	// IsLeader reports whether this candidate leads and its lease is valid now.
	IsLeader() bool
	// State returns the present state of this candidate.
	State() State
}

// State is the state of a candidate.
type State uint

// The states.
const (
	// UnknownState: the candidate does not take part, because Start does not run.
	UnknownState State = 0
	// CandidateState: the candidate takes part and does not lead.
	CandidateState State = 1
	// LeaderState: the candidate leads.
	LeaderState State = 2
)

// String returns "unknown", "candidate" or "leader".
func (s State) String() string {
	switch s {
	case UnknownState:
		return "unknown"
	case CandidateState:
		return "candidate"
	case LeaderState:
		return "leader"
	}
	return fmt.Sprintf("State(%d)", uint(s))
}

// statusWithin bounds the one request of New.
const statusWithin = 5 * time.Second

// NewElection returns a candidate for the election under the key in the bucket. The name is for
// people to read: two candidates may have the same one. NewElection reads the bucket's TTL. It
// returns an error if the server does not answer, if the TTL allows no lease, or if the name, the
// key or an option is wrong. The candidate takes part once Start is called.
func NewElection(name string, key string, bucket nats.KeyValue, opts ...Option) (Election, error) {
	o := settle(opts)
	if bucket != nil {
		status, err := bucket.Status()
		if err := o.describe(bucket.Bucket(), status, err); err != nil {
			return nil, err
		}
		o.open = func(with ...natskv.Option) driver.Store { return natskv.FromLegacyKeyValue(bucket, with...) }
	}
	e, err := newElector(name, key, o)
	if err != nil {
		return nil, err
	}
	return e, nil
}

// New is NewElection for a handle of package jetstream. It waits at most 5 s for the bucket's TTL.
func New(name string, key string, bucket jetstream.KeyValue, opts ...Option) (*Elector, error) {
	o := settle(opts)
	if bucket != nil {
		ctx, cancel := context.WithTimeout(context.Background(), statusWithin)
		defer cancel()
		status, err := bucket.Status(ctx)
		if err := o.describe(bucket.Bucket(), status, err); err != nil {
			return nil, err
		}
		o.open = func(with ...natskv.Option) driver.Store { return natskv.FromKeyValue(bucket, with...) }
	}
	return newElector(name, key, o)
}

// describe takes the answer of a handle of either kind. A handle of the program's own may have no
// status.
func (o *options) describe(bucket string, status interface{ TTL() time.Duration }, err error) error {
	if err != nil {
		return fmt.Errorf("election: the TTL of bucket %s: %w", bucket, err)
	}
	o.bucket = bucket
	if status != nil {
		o.ttl = status.TTL()
	}
	return nil
}

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

// UpTo returns a back-off whose waits grow from half a second up to longest, by half a second each.
// Each wait is then multiplied by a random factor from 0.75 to 1.25, so that candidates do not
// campaign at the same time.
func UpTo(longest time.Duration) Backoff { return upTo(longest) }

const step = 500 * time.Millisecond

type upTo time.Duration

// Duration returns the n-th wait, n from 0.
func (u upTo) Duration(n int) time.Duration {
	d := time.Duration(u)
	if n < int(d/step) {
		d = time.Duration(n+1) * step
	}
	return time.Duration((0.75 + 0.5*rand.Float64()) * float64(d)) //nolint:gosec // no secret
}
