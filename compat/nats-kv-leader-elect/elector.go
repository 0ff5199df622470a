package election

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/admin"
	"github.com/tenure-go/tenure/compat/nats-kv-leader-elect/mixed"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/timing"
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

func (e *Elector) debugf(format string, a ...any) {
	e.debug("%s @ %s.%s: %s", e.name, e.bucket, e.election.Name(), fmt.Sprintf(format, a...))
}

// report passes one event of the election to the callbacks.
func (e *Elector) report(event tenure.Event) {
	switch {
	case event.Kind == tenure.EventLeader && event.Leader.Exists():
		e.debugf("%s leads, with token %d", event.Leader.ID, event.Term)
	case event.Kind == tenure.EventLeader:
		e.debugf("nobody leads")
	case event.Cause != nil:
		e.debugf("%s: %v", event.Kind, event.Cause)
	default:
		e.debugf("%s", event.Kind)
	}
	if isFailure(event) {
		e.onError(fmt.Errorf("election: %s: %w", event.Kind, event.Cause))
	}
}

// isFailure reports whether OnError is called for an event.
func isFailure(event tenure.Event) bool {
	return event.Cause != nil && event.Kind != tenure.EventLeaving && event.Kind != tenure.EventWaiting
}

const inspectWithin = 5 * time.Second

// inspect reads the bucket's settings in a goroutine of its own, and reports unsafe or unwise ones.
// Stop ends that goroutine.
func (a *attendance) inspect() (stop func()) {
	return inBackground(a.ctx, func(ctx context.Context) {
		ctx, cancel := context.WithTimeout(ctx, inspectWithin)
		defer cancel()
		found, err := driver.AbilitiesOf(a.store).Inspect(ctx, a.lease)
		if err != nil && ctx.Err() == nil {
			a.debugf("the bucket cannot be inspected: %v", err)
		}
		for _, f := range found {
			a.tell(f)
		}
	})
}

// inBackground calls do in a goroutine. Stop ends the context of do, and waits until do has
// returned.
func inBackground(ctx context.Context, do func(ctx context.Context)) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		do(ctx)
	}()
	return func() {
		cancel()
		<-done
	}
}

func (a *attendance) tell(f driver.Finding) {
	if f.Severity == driver.Advice {
		return
	}
	a.debugf("%s", f)
	if f.Severity == driver.Unsafe {
		a.onError(errors.New("election: " + f.String()))
	}
}

const (
	// leasesInTTL: a record must outlive its lease also when renewals fail, and when the server's
	// clock, by which records expire, is set.
	leasesInTTL = 3
	// withoutTTL is the lease in a bucket without a TTL.
	withoutTTL = 15 * time.Second
	// reserves: a tenth of the lease is reserved for a leader's work to stop.
	reserves = 10
	// splay is the same as in nats-kv-leader-elect.
	splay = 5 * time.Second
)

// interval returns the time between two campaigns, as in nats-kv-leader-elect: 75 % of the TTL.
func interval(lease time.Duration) time.Duration { return leasesInTTL * lease * 3 / 4 }

// leaseFor returns the lease for a bucket, or an error if none is possible.
func (o *options) leaseFor(store driver.Store) (time.Duration, error) {
	third := (o.ttl / leasesInTTL).Truncate(time.Millisecond)
	switch {
	case o.ttl == 0 && o.migrating:
		return 0, errors.New("Migrating: the bucket has no TTL, without which no candidate of nats-kv-leader-elect works: leave " +
			"out Migrating, or look whether this is their bucket")
	case o.ttl > driver.MaxLease && o.migrating:
		return 0, fmt.Errorf("Migrating: the bucket's TTL is %v, with which no candidate of nats-kv-leader-elect works: it must be "+
			"at most %v", o.ttl, driver.MaxLease)
	case o.ttl != 0 && o.lease > third:
		return 0, fmt.Errorf("a lease of %v is longer than a third of the bucket's TTL of %v, so that the record could expire under "+
			"its leader: %s", o.lease, o.ttl, o.remedy(leasesInTTL*o.lease))
	case o.lease != 0:
		return o.lease, nil
	case o.ttl == 0:
		return withoutTTL, nil
	}
	return third, o.checkTTL(driver.AbilitiesOf(store).MinLease())
}

// checkTTL refuses a TTL that is too short or too long for a lease.
func (o *options) checkTTL(least time.Duration) error {
	switch {
	case o.ttl < leasesInTTL*least:
		return fmt.Errorf("the bucket's TTL is %v; it must be at least %v, since a record has to outlive its lease, of at least %v, "+
			"three times over: %s", o.ttl, leasesInTTL*least, least, o.remedy(30*time.Second))
	case o.ttl > leasesInTTL*driver.MaxLease:
		return fmt.Errorf("the bucket's TTL is %v, which would make a lease of more than %v: %s, or set a lease by WithLease",
			o.ttl, driver.MaxLease, o.remedy(time.Minute))
	}
	return nil
}

func (o *options) remedy(ttl time.Duration) string {
	return fmt.Sprintf("nats kv edit %s --ttl %ds", o.bucket, (ttl+time.Second-1)/time.Second)
}

// attendance is one call of Start. OnWon, OnLost and OnCampaign are called in its goroutine.
type attendance struct {
	*Elector
	ctx context.Context
	won chan *holding
}

// holding is a term that was won.
type holding struct {
	term      *tenure.Term
	over      chan struct{} // closed when the callbacks of the term have returned
	abandoned bool          // a callback panicked, so it never returned
}

// lead is a leader's work: it makes Start call OnWon and OnLost. It returns when OnLost has
// returned, so the lease is not released before.
func (a *attendance) lead(ctx context.Context, t *tenure.Term) error {
	h := &holding{term: t, over: make(chan struct{})}
	select {
	case a.won <- h:
	case <-ctx.Done():
		return nil // no callback was called
	}
	<-h.over
	if h.abandoned {
		runtime.Goexit() // work of the program may still run
	}
	return nil
}

// attend calls the callbacks that are due, until the election is over.
func (a *attendance) attend(done <-chan error) error {
	r := &campaigns{attendance: a, timer: time.NewTimer(0)}
	defer r.timer.Stop()
	r.begin()
	changed, stop := a.statusChanges()
	defer stop()
	defer a.inspect()()
	for {
		select {
		case <-r.timer.C:
			r.campaign()
		case <-changed:
			r.look(false)
		case h := <-a.won:
			a.serveTerm(h)
			r.begin()
		case err := <-done:
			return err
		}
	}
}

// statusChanges returns a channel that receives a value after each change of the election's status,
// and never receives without a back-off. Stop ends the goroutine that sends.
func (a *attendance) statusChanges() (changed <-chan struct{}, stop func()) {
	if a.backoff == nil {
		return nil, func() {}
	}
	c := make(chan struct{}, 1)
	return c, inBackground(a.ctx, func(ctx context.Context) {
		for _, err := range a.election.Watch(ctx) {
			if err != nil {
				return // Start returns it
			}
			select {
			case c <- struct{}{}:
			default: // the receiver has not yet seen the change before
			}
		}
	})
}

// serveTerm calls the callbacks of one term.
func (a *attendance) serveTerm(h *holding) {
	h.abandoned = true
	defer func() {
		a.hold(nil)
		close(h.over)
	}()
	if a.serve(h.term) {
		a.onLost()
	}
	h.abandoned = false
}

// serve calls OnWon, and OnCampaign after each renewal, until the term is over or this candidate
// should stop leading. It reports whether it called OnWon.
func (a *attendance) serve(t *tenure.Term) bool {
	if !leads(t) {
		return false
	}
	a.hold(t)
	a.onWon()
	for until := deadline(t); ; {
		renewed := timing.Renewed(t) // or sent a renewal, which changes nothing yet
		if now := deadline(t); now.After(until.Add(leastGain)) {
			until = now
			a.onCampaign(LeaderState)
		}
		select {
		case <-t.Context().Done():
			return true
		case <-renewed:
		}
	}
}

// leastGain is more than the time between two reads of the clock, and less than a renewal adds to
// the deadline.
const leastGain = 10 * time.Millisecond

func deadline(t *tenure.Term) time.Time { return time.Now().Add(t.Remaining()) }

// Backoff says how long a candidate that does not lead waits between two campaigns.
type Backoff interface {
	// Duration returns the n-th wait, n from 0.
	Duration(n int) time.Duration
}

// leastWait keeps a back-off of 0 from looping without a pause.
const leastWait = 10 * time.Millisecond

// campaigns are those of one Start, while this candidate does not lead.
//
// A candidate with a back-off becomes eligible by a campaign that finds the last leader's lease
// over, if the store has answered for a whole lease before. It stays eligible until a candidate
// leads again. It is eligible without a campaign if there is no such lease, because it was released
// or the record is gone, and also while it has seen no other leader since it started or led last.
type campaigns struct {
	*attendance
	timer  *time.Timer
	n      int
	eager  bool      // no other candidate has led since this one started, or led last
	trying bool      // eligible
	failed time.Time // when the store was last known not to answer
}

// begin starts over with a campaign at once, so that OnCampaign is called before the candidate can
// be elected.
func (r *campaigns) begin() {
	r.n, r.eager, r.trying = 0, true, true
	r.look(false)
	r.campaign()
}

// campaign makes one campaign, and sets the timer for the next one.
func (r *campaigns) campaign() {
	if r.ctx.Err() != nil {
		return
	}
	r.onCampaign(CandidateState)
	r.timer.Reset(r.wait())
	r.n++
	r.look(true)
}

func (r *campaigns) wait() time.Duration {
	if r.backoff == nil {
		return interval(r.lease)
	}
	return max(r.backoff.Duration(r.n), leastWait)
}

// look decides whether this candidate is eligible now; due means that a campaign is due. A
// candidate that was elected stays eligible.
func (r *campaigns) look(due bool) {
	if r.backoff == nil {
		return
	}
	s := r.election.Status()
	if s.State != tenure.StateCandidate {
		return
	}
	if s.Failures > 0 {
		r.failed = time.Now()
	}
	switch {
	case s.Leader.Exists():
		r.eager, r.trying = false, false
	case r.eager, s.Known && s.Record.Kind != admin.Held, due && time.Since(r.failed) >= r.lease:
		r.trying = true // after an outage the last leader has a lease to come back in
	}
	r.election.SetEligible(r.trying)
}
