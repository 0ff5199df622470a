package tenure

import (
	"context"
	"errors"
	"fmt"

	"github.com/tenure-go/tenure/driver"
)

// Handler is the work of a leader. Implement it if the work needs no goroutine of its own, for
// example if it only keeps a table of what this process leads. A Group calls it. A Lead is a
// Handler whose work is one function.
type Handler interface {
	// Elected begins the work of a term and returns. Its context is the soft one. If it returns
	// nil, the work goes on and the lease is renewed until Stop is called. If it returns an error,
	// the work must have stopped, since the lease is released then. With ErrDecline this process
	// campaigns again after Tuning.Backoff. For any other error see the table of Election.Run;
	// package fleet handles it like ErrDecline. Calls for one election follow one another; those
	// for different ones are concurrent.
	Elected(ctx context.Context, term *Term) error
	// Stop ends the work that Elected began. It is called once, when the work should finish, but
	// not before Elected has returned nil. context.Cause of term.Soft() returns the reason. The
	// context of Stop is the hard one: while it is open the lease is renewed, for FinishWithin at
	// most. If it has ended, the term is lost. When Stop returns, the work must have stopped
	// wherever it runs, since the lease is released then.
	//
	// Work that ends by itself calls term.Resign when it has stopped. That ends this process's part
	// in the election, and Stop is not called, unless a call has already begun.
	Stop(ctx context.Context, term *Term) error
}

// errFinished ends a term whose Lead has returned nil.
var errFinished = errors.New("the work has finished")

// Elected implements Handler: it calls the function, which lasts as long as the work. If the
// function returns nil, Elected returns an error that ends the term without a failure. A Handler
// that wraps a Lead must pass that error on.
func (l Lead) Elected(ctx context.Context, term *Term) error {
	if err := l(ctx, term); err != nil {
		return err
	}
	return errFinished
}

// Stop implements Handler. It is never called, since the work has stopped when its function
// returns.
func (l Lead) Stop(context.Context, *Term) error { return nil }

// Group takes part in many elections on one store, with one ID and one Config. Its elections share
// memory and contexts: from the 2nd to the 10,000th, each needs about half the memory of an
// election made by New. Together they make at most 256 store calls at once, besides those of
// HandOver. To spread the leadership of many elections over several processes, use package fleet,
// which is built on it.
//
// All methods may be called concurrently.
type Group struct {
	shared *shared
	config Config // with defaults
	// settings has the settings without a Nominator and those with one.
	settings [2]*settings
}

// NewGroup returns a group without elections. It starts nothing and does not call the store. A
// Nominator serves one candidate, so cfg must have none: give it to Group.Election. The error has a
// *ConfigError for each problem. If store is nil, the error reports only that.
func NewGroup(store driver.Store, cfg Config) (*Group, error) {
	if store == nil {
		return nil, errNoStore
	}
	full := cfg.withDefaults()
	found := full.check(store, &cfg)
	if cfg.Nominator != nil {
		found = append(found, problem("Nominator", cfg.Nominator, "is set, but a group takes one for each election", "")...)
	}
	if len(found) > 0 {
		return nil, &invalidError{"group", found}
	}
	g := &Group{shared: newShared(store, &cfg, &full), config: full}
	for i, nominated := range []bool{false, true} {
		g.settings[i] = newSettings(g.shared, &cfg, &full)
		g.settings[i].machine.HasNominator = nominated
	}
	return g, nil
}

// Election returns an election of the group. It starts nothing: campaign with Join, or with Run or
// Campaign of the Election. Reconfiguring it does not affect the others. The Nominator serves this
// candidate alone. If it is nil, there is no nominee. The error has a *ConfigError for each problem
// of the name and the Nominator.
func (g *Group) Election(name string, nominator driver.Nominator) (*Election, error) {
	cfg := g.config
	cfg.Nominator = nominator
	if err := invalid(name, checkName(g.shared.store, name), cfg.checkNomination()); err != nil {
		return nil, err
	}
	s := g.settings[0]
	if nominator != nil {
		s = g.settings[1]
	}
	return newElection(g.shared, name, s, nominator), nil
}

// Join campaigns in an election and calls the handler whenever this process is elected, until ctx
// ends or Leave is called. It returns at once. Elected and Stop are each called in a goroutine that
// ends with the call. The table of Election.Run says how the group goes on after each result of
// Elected and Stop.
//
// The channel receives one value when this process no longer takes part in the election and its
// work has stopped: what Run would return, or an error that wraps ErrAbandoned if the handler
// called runtime.Goexit. Join itself returns ErrRunning, ErrTermOpen, or an error if the election
// is not of this group.
func (g *Group) Join(ctx context.Context, e *Election, handler Handler) (ended <-chan error, err error) {
	if e.runner.shared != g.shared {
		return nil, fmt.Errorf("tenure: election %q: it is not of this group", e.Name())
	}
	s := &session{handler: handler, done: make(chan error, 1)}
	if err := s.begin(ctx, e); err != nil {
		return nil, err
	}
	return s.done, nil
}

// Leave ends this process's part in one election: a candidate gives up, and a leader is asked to
// finish, with ErrShutdown, and releases its lease. Leave does not wait for that. When that is
// done, the channel of Join receives nil; an error of the handler becomes an EventFailed. Leave has
// no effect on an election of another group, or while neither Join nor Election.Run is under way
// for it.
func (g *Group) Leave(e *Election) {
	if e.runner.shared == g.shared {
		e.runner.stop()
	}
}

// Run joins elections of these names. It returns when this process takes part in none of them any
// longer and all work has stopped, as after the end of ctx. If this process's part in one election
// ends early, as after an error of the handler, the others go on. Run returns nil if every election
// ended without an error. Otherwise it returns an error that wraps the error of one election: the
// first with an error, in the order of the names. If a name is not valid, it returns an error and
// joins none.
func (g *Group) Run(ctx context.Context, handler Handler, names ...string) error {
	all := make([]*Election, len(names))
	for i, name := range names {
		e, err := g.Election(name, nil)
		if err != nil {
			return err
		}
		all[i] = e
	}
	ends := make([]<-chan error, len(all))
	for i, e := range all {
		ends[i], _ = g.Join(ctx, e, handler) // a new election can always be joined
	}
	var first error
	failed := 0
	for i, ended := range ends {
		if err := <-ended; err != nil {
			failed++
			if first == nil {
				first = fmt.Errorf("tenure: election %q: %w", names[i], err)
			}
		}
	}
	if failed > 1 {
		return fmt.Errorf("%w (and %d other elections failed)", first, failed-1)
	}
	return first
}

// onSoftEnd makes the session call Stop when the soft context ends, or now if it has ended.
func (m *runner) onSoftEnd(t *Term, s *session) {
	m.mu.Lock()
	defer m.mu.Unlock()
	t.session = s
	if cause := context.Cause(t.softContext); cause != nil {
		t.askToFinish(cause)
	}
}

// hasFinished reports whether the work of the term is known to have stopped.
func (m *runner) hasFinished(t *Term) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return t.finished
}
