package clientgo

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver"
)

// The errors of a Lock.
var (
	// ErrNotRunning is the result of each call of a Lock outside of Run and Elect.
	ErrNotRunning = errors.New("clientgo: the lock takes part in no election: start the elector within Lock.Run or Lock.Elect")
	// ErrNotElected is the result of Create and Update while this process is not elected.
	ErrNotElected = errors.New("clientgo: this process is not elected")
	// ErrReleaseOnCancel is the result of a release by the elector, which the lock refuses, since
	// the elector does not know whether the work has stopped. Run and Elect return it, too.
	ErrReleaseOnCancel = errors.New("clientgo: ReleaseOnCancel must be off: Lock.Run and Lock.Elect release when the work has stopped")
)

// Lock is a resourcelock.Interface in the strict mode: Tenure elects. It serves one elector, within
// Run or Elect. It must be made by New. Its methods may be called from many goroutines, and none of
// those of resourcelock.Interface waits for the store.
type Lock struct {
	election *tenure.Election
	identity string
	times    Times
	session  atomic.Pointer[session] // of the present or last Run; nil: there was none
	running  atomic.Bool
	gets     atomic.Uint64
}

var _ resourcelock.Interface = (*Lock)(nil)

// New returns a lock for the election of a name in a store. It starts nothing and does not call the
// store. It returns an error if the settings do not fit together, or one of tenure.New.
func New(store driver.Store, name string, cfg Config) (*Lock, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	e, err := tenure.New(store, name, cfg.Election)
	if err != nil {
		return nil, err
	}
	return &Lock{election: e, identity: identity(e.ID(), e.Member().Incarnation), times: cfg.times()}, nil
}

// identity has the incarnation, because an ID is a label that two processes may have.
func identity(id, incarnation string) string { return id + "_" + incarnation }

// Times returns the settings of the elector that belong to this lock.
func (l *Lock) Times() Times { return l.times }

// Election returns the election of the lock, to observe it, hand over, or change whether this
// process is eligible. Do not call its Run, Join or Campaign. Its Reconfigure goes around the
// checks of New: with a smaller StopWithin, or a larger TimerLateness, another process may lead
// before the elector has stopped, and a new Lease does not change Times.
func (l *Lock) Election() *tenure.Election { return l.election }

// Term returns the term in which the elector of this lock leads, or led last. It is nil, which is a
// term that is over, if there is none. Check its Err right before each act, or send its Token with
// each write: the elector itself does not notice that the process was frozen. Do not call its
// Resign: that releases the lease at once, and the elector works on until it gives up.
func (l *Lock) Term() *tenure.Term {
	s := l.session.Load()
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.acquired {
		return nil
	}
	return s.term
}

// session is one Run.
type session struct {
	takePart func()        // called by the first Get: the elector is there
	asked    chan struct{} // closed by takePart
	stopWork context.CancelCauseFunc
	ended    chan struct{} // closed when the work has ended
	failed   bool          // the work may still run; written before ended is closed
	waits    bool          // start returns only when the work has stopped, also after a loss

	mu       sync.Mutex
	term     *tenure.Term // nil: none is open, or the elector may not acquire it any more
	acquired bool         // the elector has acquired the term
	held     time.Time    // when the elector last acquired or renewed
	gaveUp   error        // the elector stopped by itself
	refused  error
}

// Run takes part in the election and calls start, which starts the elector and returns when the
// work has ended, such as Start of a manager. The context of start ends when ctx does, when the
// term ends, and when the leader is asked to hand over. This process becomes a candidate when the
// elector first calls the lock.
//
// The result nil of start reports that all work has stopped. Then Run releases the lease. After any
// other result, or a panic, work may still run. Then Run releases nothing, and the lease expires:
// exit the program. The same holds after the term was lost, or the elector gave up by itself, since
// Start of a manager may return nil then although runnables go on.
//
// Run returns the error of start. If that is nil, it returns nil if ctx has ended, or start has
// returned by itself. Otherwise it returns the reason why this process no longer leads, that the
// elector gave up, or the error of tenure.Election.Run. ErrReleaseOnCancel is added if the elector
// tried to release.
func (l *Lock) Run(ctx context.Context, start func(context.Context) error) error {
	return l.run(ctx, start, false)
}

func (l *Lock) run(ctx context.Context, start func(context.Context) error, waits bool) (err error) {
	if !l.running.CompareAndSwap(false, true) {
		return tenure.ErrRunning
	}
	defer l.running.Store(false)
	campaign, endCampaign := context.WithCancel(ctx)
	work, stopWork := context.WithCancelCause(ctx)
	defer stopWork(nil)
	s := &session{asked: make(chan struct{}), ended: make(chan struct{}), stopWork: stopWork, failed: true, waits: waits}
	s.takePart = sync.OnceFunc(func() { close(s.asked) })
	l.session.Store(s)
	campaigned := make(chan error, 1)
	go s.campaign(campaign, l.election, campaigned)
	var over error // why the work had to stop; the end of the campaign below is no reason
	func() {
		defer func() {
			s.failed = s.failed || err != nil
			endCampaign()
			close(s.ended)
		}()
		err = start(work)
		over, s.failed = context.Cause(work), !waits && s.electorGaveUp() != nil
	}()
	result := <-campaigned
	if err == nil {
		err = result
	}
	if err == nil && ctx.Err() == nil && over != nil {
		err = fmt.Errorf("clientgo: this process no longer leads: %w", over)
	}
	if err == nil && !waits {
		err = s.electorGaveUp()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return errors.Join(err, s.refused)
}

// campaign leads until the work has ended. The result is nil if the term is abandoned, since start
// has returned an error then.
func (s *session) campaign(ctx context.Context, e *tenure.Election, result chan<- error) {
	var err error
	defer func() { result <- err }()
	select {
	case <-s.asked:
	case <-ctx.Done():
		return
	}
	if err = e.Run(ctx, s.lead); err != nil {
		s.stopWork(err)
	}
}

// lead returns when the work has ended, so that the release comes after it. If the elector has not
// acquired the term, there is no work.
func (s *session) lead(asked context.Context, term *tenure.Term) error {
	s.mu.Lock()
	s.term = term
	s.mu.Unlock()
	select {
	case <-s.ended:
	case <-asked.Done():
		if s.dismiss() {
			return nil
		}
		s.stopWork(context.Cause(asked))
		<-s.ended
	}
	if s.failed || !s.waits && term.Err() != nil {
		runtime.Goexit() // abandons the term: nothing is released
	}
	return nil
}

// dismiss closes a term to the elector, unless it has acquired it.
func (s *session) dismiss() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.acquired {
		s.term = nil
	}
	return !s.acquired
}

// valid returns nil while this process may act.
func (s *session) valid() error {
	if s.term == nil {
		return ErrNotElected
	}
	return s.term.Err()
}

// Get returns a record that names this process while its term is open and its lease is valid.
// Otherwise it names the leader that this process knows, if any. It never returns that a record is
// missing.
func (l *Lock) Get(context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	s := l.session.Load()
	if s == nil || !l.running.Load() {
		return nil, nil, ErrNotRunning
	}
	s.takePart()
	r := &resourcelock.LeaderElectionRecord{LeaseDurationSeconds: int(l.times.LeaseDuration / time.Second)}
	s.mu.Lock()
	leads := s.valid() == nil
	s.mu.Unlock()
	switch other := l.election.Status().Leader; {
	case leads:
		r.HolderIdentity = l.identity
	case other.Exists() && identity(other.ID, other.Incarnation) != l.identity:
		r.HolderIdentity = identity(other.ID, other.Incarnation)
	}
	// Tenure counts the leases. To the elector each answer is a renewal, so that it does not try to
	// take over from a leader.
	return r, fmt.Appendf(nil, "%s %d", r.HolderIdentity, l.gets.Add(1)), nil
}

// Create does the same as Update.
func (l *Lock) Create(_ context.Context, r resourcelock.LeaderElectionRecord) error {
	return l.hold(r)
}

// Update returns nil while the lease of this process is valid at this moment (tenure.Term.Err). It
// changes nothing in the store. It refuses a record that does not name this process: a release.
func (l *Lock) Update(_ context.Context, r resourcelock.LeaderElectionRecord) error {
	return l.hold(r)
}

func (l *Lock) hold(r resourcelock.LeaderElectionRecord) error {
	s := l.session.Load()
	if s == nil || !l.running.Load() {
		return ErrNotRunning
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.HolderIdentity != l.identity {
		s.refused = ErrReleaseOnCancel
		return s.refused
	}
	err := s.valid()
	if err == nil {
		s.acquired, s.held = true, time.Now()
	}
	return err
}

// RecordEvent is how the elector reports that it stops. Other events are dropped: tenure.Config has
// outputs for them.
func (l *Lock) RecordEvent(event string) {
	s := l.session.Load()
	if s == nil || event != "stopped leading" {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	// An elector that is asked to stop has renewed within RetryPeriod. One that gives up has tried
	// for RenewDeadline, which may be over after a freeze in which the term stays valid.
	if since := time.Since(s.held); since >= l.times.RenewDeadline {
		s.gaveUp = fmt.Errorf("clientgo: the elector stopped %v after its last renewal, so work may still run: exit the program", since)
	}
}

// electorGaveUp returns an error if the elector may have stopped before the work. Then Start of a
// manager may return nil although runnables go on.
func (s *session) electorGaveUp() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.gaveUp
}

// Identity returns the name of this process in the records of the lock: its ID, "_" and its
// incarnation, which no other process has.
func (l *Lock) Identity() string { return l.identity }

// Describe returns the name of the election, for logs.
func (l *Lock) Describe() string { return "tenure election " + l.election.Name() }
