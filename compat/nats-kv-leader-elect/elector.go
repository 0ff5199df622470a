package election

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/compat/nats-kv-leader-elect/mixed"
	"github.com/tenure-go/tenure/driver"
)

var (
	errStarted = errors.New("election: already running")
	errNothing = errors.New("neither a bucket nor WithStore")
	errTwice   = errors.New("Migrating is for the handle; with WithStore pass mixed.Migrating to natskv.Open")
)

// Elector is a candidate. It must be made by New or NewElection. Its methods may be called from
// many goroutines, and from within callbacks.
type Elector struct {
	options
	name     string
	lease    time.Duration
	store    driver.Store
	group    *tenure.Group
	election *tenure.Election

	mu     sync.Mutex
	cancel context.CancelFunc // nil while Start does not run
	term   *tenure.Term       // from before OnWon is called until OnLost has returned
}

var _ Election = (*Elector)(nil)

func newElector(name, key string, o options) (*Elector, error) {
	e := &Elector{options: o, name: name}
	if err := e.build(key); err != nil {
		return nil, fmt.Errorf("election: bucket %s: %w", o.bucket, err)
	}
	e.debugf("the lease is %v", e.lease)
	return e, nil
}

func (e *Elector) build(key string) (err error) {
	if e.store, err = e.options.over(); err != nil {
		return err
	}
	if e.lease, err = e.leaseFor(e.store); err != nil {
		return err
	}
	if e.group, err = tenure.NewGroup(e.store, e.settings()); err != nil {
		return err
	}
	e.election, err = e.group.Election(key)
	return err
}

// over returns the store of the election.
func (o *options) over() (driver.Store, error) {
	switch {
	case o.store != nil && o.migrating:
		return nil, errTwice
	case o.store != nil:
		return o.store, nil
	case o.open == nil:
		return nil, errNothing
	case o.migrating:
		return o.open(mixed.Migrating()), nil
	}
	return o.open(), nil
}

// settings returns the settings of the election.
func (e *Elector) settings() tenure.Config {
	c := tenure.Config{ID: e.name, Lease: e.lease, StopWithin: e.lease / reserves, Tuning: tenure.Tuning{Splay: splay}, Logger: e.logger}
	if e.noSplay {
		c.Tuning.Splay = 0
	}
	if e.configure != nil {
		e.configure(&c)
	}
	if c.Lease != 0 {
		e.lease = c.Lease
	}
	c.Lease = e.lease
	also := c.OnEvent
	c.OnEvent = func(event tenure.Event) {
		e.report(event)
		if also != nil {
			also(event)
		}
	}
	return c
}

// Start takes part until ctx ends or Stop is called. If this candidate leads then, Start returns
// after OnLost has returned and the lease was released. Then Start may be called again.
//
// It returns nil at the end. It returns an error if this candidate already takes part; one that
// wraps tenure.ErrRunning if a callback of an earlier Start panicked; and, with WithStore, one
// that wraps driver.ErrDenied if the store has denied every read from the beginning.
func (e *Elector) Start(ctx context.Context) error {
	ctx, err := e.begin(ctx)
	if err != nil {
		return err
	}
	defer e.end()
	a := &attendance{Elector: e, ctx: ctx, won: make(chan *holding)}
	done, err := e.group.Join(ctx, e.election, tenure.Lead(a.lead))
	if err != nil {
		return fmt.Errorf("election: %w", err)
	}
	if err := a.attend(done); err != nil {
		return fmt.Errorf("election: %w", err)
	}
	return nil
}

func (e *Elector) begin(ctx context.Context) (context.Context, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.cancel != nil {
		return nil, errStarted
	}
	ctx, e.cancel = context.WithCancel(ctx)
	return ctx, nil
}

func (e *Elector) end() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.cancel()
	e.cancel, e.term = nil, nil
}

// Stop makes Start end: if this candidate leads, OnLost is called and the lease is released; then
// Start returns. Stop does not wait for that, so it may be called from anywhere, also from
// callbacks. It has no effect on a candidate that does not take part.
func (e *Elector) Stop() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.cancel != nil {
		e.cancel()
	}
}

// IsLeader reports whether this candidate leads: OnWon was called, OnLost was not yet called, and
// the lease is valid at this moment by this process's clock.
func (e *Elector) IsLeader() bool { return leads(e.Term()) }

func leads(t *tenure.Term) bool {
	return t != nil && t.Context().Err() == nil && t.Err() == nil
}

// State returns LeaderState if IsLeader is true, UnknownState if Start does not run, and otherwise
// CandidateState.
func (e *Elector) State() State {
	e.mu.Lock()
	t, running := e.term, e.cancel != nil
	e.mu.Unlock()
	switch {
	case !running:
		return UnknownState
	case leads(t):
		return LeaderState
	}
	return CandidateState
}

// Token returns the fencing token of the term that this candidate holds at this moment, 0 if it
// holds none. Each OnWon has a higher token than any earlier leader had. Pass it to the resource
// with each write.
func (e *Elector) Token() uint64 {
	if t := e.Term(); t != nil && t.Err() == nil {
		return t.Token()
	}
	return 0
}

// Term returns the term itself, even if it is over, from the call of OnWon until OnLost has
// returned; nil otherwise. Its LeaseContext ends with the lease, also while a callback is running.
func (e *Elector) Term() *tenure.Term {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.term
}

func (e *Elector) hold(t *tenure.Term) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.term = t
}
