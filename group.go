package tenure

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/internal/record"
)

// Handler is the work of a leader. Implement it if the work needs no goroutine of its own, for
// example if it only keeps a table of what this process leads. A Group calls it. A Lead is a
// Handler whose work is one function.
type Handler interface {
	// Elected begins the work of a term. Its context is that of Term.Context. If the work goes on
	// when Elected returns, it returns a function that stops it, and the lease is renewed until
	// that has returned. If stop is nil or there is an error, the work must have stopped, since the
	// lease is released then. With ErrDecline this process campaigns again after Tuning.Backoff.
	// For any other result see the table of Election.Run; package fleet handles each like
	// ErrDecline. Calls for one election follow one another; those for different ones are
	// concurrent.
	//
	// Stop is called once, when the work should finish. Its context is that of Term.LeaseContext:
	// while it is open the lease is renewed, for FinishWithin at most. If it has ended, the term is
	// lost. When stop returns, the work must have stopped wherever it runs, since the lease is
	// released then.
	//
	// Work that ends by itself calls term.Resign when it has stopped. That ends this process's part
	// in the election, and stop is not called, unless a call has already begun.
	Elected(ctx context.Context, term *Term) (stop func(context.Context) error, err error)
}

// Elected implements Handler: it calls the function, which lasts as long as the work.
func (l Lead) Elected(ctx context.Context, term *Term) (stop func(context.Context) error, err error) {
	return nil, l(ctx, term)
}

// Group holds many elections on one store, with one ID and one Config. They share memory and
// contexts: from the 2nd to the 10,000th, each needs about half the memory of an election made by
// New. Together they make at most 256 store calls at once, besides those of HandOver. To spread the
// leadership of many elections over several processes, use package fleet, which is built on it.
//
// All methods may be called concurrently.
type Group struct {
	shared *shared
	config Config // with defaults
	// settings has the settings without a Nominator and those with one.
	settings [2]*settings

	mu        sync.Mutex
	elections map[string]*Election
	watches   []*groupWatch
}

// NewGroup returns a group without elections. It starts nothing and does not call the store. A
// *ConfigError lists all problems of the config. If store is nil, the error reports only that.
func NewGroup(store driver.Store, cfg Config) (*Group, error) {
	if store == nil {
		return nil, errNoStore
	}
	full := cfg.WithDefaults()
	if found := full.check(driver.AbilitiesOf(store), &cfg); len(found) > 0 {
		return nil, &ConfigError{"group", found}
	}
	g := &Group{shared: newShared(store, &cfg, &full), config: full, elections: map[string]*Election{}}
	for i, nominated := range []bool{false, true} {
		g.settings[i] = newSettings(g.shared, &cfg, &full)
		g.settings[i].machine.HasNominator = nominated
	}
	return g, nil
}

// Election returns the group's election of this name. The first call makes it, and starts nothing:
// campaign with Join, or with Run or Campaign of the Election. Reconfiguring it does not affect the
// others. The group keeps it until Leave. A *ConfigError lists the problems of the name.
func (g *Group) Election(name string) (*Election, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if e := g.elections[name]; e != nil {
		return e, nil
	}
	by := nominatorOf(&g.config, name)
	if err := invalid(name, checkName(driver.AbilitiesOf(g.shared.store), name), g.config.checkNomination(by != nil)); err != nil {
		return nil, err
	}
	s := g.settings[0]
	if by != nil {
		s = g.settings[1]
	}
	e := newElection(g.shared, name, s, by)
	g.add(e)
	return e, nil
}

// add is called under the lock.
func (g *Group) add(e *Election) {
	g.elections[e.Name()] = e
	for _, w := range g.watches {
		w.add(e)
	}
}

// Join campaigns in an election and calls the handler whenever this process is elected, until ctx
// ends or Leave is called. It returns at once. Elected and its result stop are each called in a
// goroutine that ends with the call. The table of Election.Run says how the group goes on after
// each result of them. After Leave it takes the election back into the group, unless that has
// another one of its name.
//
// The channel receives one value when this process no longer takes part in the election and its
// work has stopped: what Run would return, or an error that wraps ErrAbandoned if the handler
// called runtime.Goexit. Join itself returns ErrRunning, or an error if the election is not of
// this group.
func (g *Group) Join(ctx context.Context, e *Election, handler Handler) (ended <-chan error, err error) {
	if err := g.takeBack(e); err != nil {
		return nil, err
	}
	s := &session{handler: handler, done: make(chan error, 1)}
	if err := s.begin(ctx, e); err != nil {
		return nil, err
	}
	if !g.has(e) { // Leave came first
		e.runner.stop()
	}
	return s.done, nil
}

func (g *Group) has(e *Election) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.elections[e.Name()] == e
}

func (g *Group) takeBack(e *Election) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch now := g.elections[e.Name()]; {
	case now == e:
	case e.runner.shared != g.shared || now != nil:
		return fmt.Errorf("tenure: election %q: it is not of this group", e.Name())
	default:
		g.add(e)
	}
	return nil
}

// Leave ends this process's part in one election, and the group forgets it: Watch follows it no
// longer. A candidate gives up, and a leader is asked to finish, with ErrShutdown, and releases its
// lease. Leave does not wait for that. When that is done, the channel of Join receives nil; an
// error of the handler becomes an EventFailed. Leave has no effect on an election of another group.
func (g *Group) Leave(e *Election) {
	if e.runner.shared != g.shared {
		return
	}
	g.forget(e) // first, so that a Join that has not begun yet sees it
	e.runner.stop()
}

func (g *Group) forget(e *Election) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.elections[e.Name()] == e {
		delete(g.elections, e.Name())
		for _, w := range g.watches {
			w.remove(e)
		}
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
		e, err := g.Election(name)
		if err != nil {
			return err
		}
		all[i] = e
	}
	errs := make([]error, len(all))
	ends := make([]<-chan error, len(all))
	for i, e := range all {
		ends[i], errs[i] = g.Join(ctx, e, handler)
	}
	var first error
	failed := 0
	for i, ended := range ends {
		if errs[i] == nil {
			errs[i] = <-ended
		}
		if errs[i] != nil {
			failed++
			first = cmp.Or(first, fmt.Errorf("tenure: election %q: %w", names[i], errs[i]))
		}
	}
	if failed > 1 {
		return fmt.Errorf("%w (and %d other elections failed)", first, failed-1)
	}
	return first
}

// whenAsked has a function called in a new goroutine when the work should finish, or now if it
// should.
func (m *runner) whenAsked(t *Term, stop func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	t.whenAsked = stop
	if cause := context.Cause(t.context); cause != nil {
		t.askToFinish(cause)
	}
}

// hasFinished reports whether the work of the term is known to have stopped.
func (m *runner) hasFinished(t *Term) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return t.finished
}

// maxCalls is how many store calls of a Group are under way at once. Ten thousand elections may
// want to renew, or to claim, in the same moment. Without the limit their calls would wait for the
// store, with a goroutine or more for each. Every other election has a limit of its own.
const maxCalls = 256

// callLimiter makes the store calls of a Group: urgent calls first, otherwise in the order of the
// requests. It has goroutines only while there are calls. If the store hangs, its calls time out
// (see package driver). Calls that waited for longer than their time limit then end at once.
type callLimiter struct {
	limit int // 0: maxCalls

	mu            sync.Mutex
	running       int
	urgent, other []func() // waiting calls
}

func (c *callLimiter) start(urgent bool, call func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.running < cmp.Or(c.limit, maxCalls):
		c.running++
		go c.work(call)
	case urgent:
		c.urgent = append(c.urgent, call)
	default:
		c.other = append(c.other, call)
	}
}

func (c *callLimiter) work(call func()) {
	for call != nil {
		call()
		call = c.next()
	}
}

// next returns the next call, or nil if there is none.
func (c *callLimiter) next() func() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if call := takeFirst(&c.urgent); call != nil {
		return call
	}
	if call := takeFirst(&c.other); call != nil {
		return call
	}
	c.running--
	return nil
}

// takeFirst removes and returns the first waiting call; nil if there is none.
func takeFirst(waiting *[]func()) func() {
	all := *waiting
	if len(all) == 0 {
		*waiting = nil
		return nil
	}
	call := all[0]
	all[0], *waiting = nil, all[1:]
	return call
}

// cancelGroup waits for the ends of the contexts of a Group's campaigns. Most elections share one
// context, so one wait serves them all.
type cancelGroup struct {
	mu     sync.Mutex
	byDone map[<-chan struct{}]*campaignContext // by the context's Done
}

// campaignContext is one context and the seekers that campaign with it.
type campaignContext struct {
	stop    func() bool // stops the wait for its end
	seekers []*seeker
}

// add makes the runner of a seeker leave when the seeker's context ends.
func (g *cancelGroup) add(s *seeker) {
	done := s.ctx.Done()
	if done == nil {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	campaign := g.byDone[done]
	if campaign == nil {
		campaign = &campaignContext{}
		if g.byDone == nil {
			g.byDone = map[<-chan struct{}]*campaignContext{}
		}
		g.byDone[done] = campaign
		campaign.stop = context.AfterFunc(s.ctx, func() { g.ended(done) })
	}
	s.index = len(campaign.seekers)
	campaign.seekers = append(campaign.seekers, s)
}

func (g *cancelGroup) ended(done <-chan struct{}) {
	g.mu.Lock()
	campaign := g.byDone[done]
	delete(g.byDone, done)
	g.mu.Unlock()
	if campaign == nil {
		return // the last seeker has just been removed
	}
	for _, s := range campaign.seekers {
		s.runner.leave(s)
	}
}

// remove stops waiting for the end of a seeker's context.
func (g *cancelGroup) remove(s *seeker) {
	done := s.ctx.Done()
	g.mu.Lock()
	defer g.mu.Unlock()
	campaign := g.byDone[done]
	if campaign == nil || s.index >= len(campaign.seekers) || campaign.seekers[s.index] != s {
		return // the context has ended, and later campaigns may use it again
	}
	last := len(campaign.seekers) - 1
	campaign.seekers[s.index], campaign.seekers[last].index = campaign.seekers[last], s.index
	campaign.seekers[last], campaign.seekers = nil, campaign.seekers[:last]
	if last == 0 {
		delete(g.byDone, done)
		campaign.stop()
	}
}

// leaderInterner keeps the leaders that a Group has seen, so that published data that is the same
// in many records is in memory once. That data is never changed.
type leaderInterner struct {
	mu    sync.Mutex
	known []internedLeader // one of each ID
}

// internedLeader is the published data of one leader.
type internedLeader struct {
	id, addr string
	metadata map[string]string
}

// maxInterned bounds the number of kept leaders, which may be long gone.
const maxInterned = 64

// intern replaces a record's data about its leader by an equal copy that is known already.
func (l *leaderInterner) intern(r *record.Record) {
	l.mu.Lock()
	defer l.mu.Unlock()
	i := slices.IndexFunc(l.known, func(k internedLeader) bool { return k.id == r.LeaderID })
	seen := internedLeader{r.LeaderID, r.LeaderAddr, r.Metadata}
	switch {
	case i < 0 && len(l.known) == maxInterned:
		l.known = []internedLeader{seen}
	case i < 0:
		l.known = append(l.known, seen)
	case l.known[i].same(&seen):
		k := l.known[i]
		r.LeaderID, r.LeaderAddr, r.Metadata = k.id, k.addr, k.metadata
	default:
		l.known[i] = seen
	}
}

func (l *internedLeader) same(o *internedLeader) bool {
	return l.addr == o.addr && maps.Equal(l.metadata, o.metadata)
}
