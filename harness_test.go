package tenure_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/clock"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/faults"
	"github.com/tenure-go/tenure/driver/memory"
	"github.com/tenure-go/tenure/internal/record"
	"github.com/tenure-go/tenure/nomination"
)

const (
	key = "job"
	// lease is the lease in these tests. Virtual time costs nothing.
	lease = 15 * time.Second
	// atOnce is longer than a few steps of virtual time and shorter than any wait.
	atOnce = 10 * time.Millisecond
)

// operated is a memory store with the methods of an operator, with or without Watch.
type operated interface {
	driver.Store
	Put(key string, value []byte) driver.Version
	Delete(key string) driver.Version
	Purge(key string)
}

// kind is a kind of store.
type kind struct {
	name string
	open func() operated
}

var (
	watched = kind{"watched", func() operated { return memory.New() }}
	polled  = kind{"polled", func() operated { return memory.NewPolled() }}
)

// scenes are tests of an election, each with the property that it shows.
type scenes map[string]func(*scene)

// play plays each scene on these kinds of store, by default on one that pushes and on one that must
// be polled.
func (all scenes) play(t *testing.T, kinds ...kind) {
	for name, test := range all {
		t.Run(name, func(t *testing.T) { play(t, test, kinds...) })
	}
}

// play plays one scene. Each play has a synctest bubble of its own.
func play(t *testing.T, test func(*scene), kinds ...kind) {
	if kinds == nil {
		kinds = []kind{watched, polled}
	}
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := k.open()
				test(&scene{t, store, store})
			})
		})
	}
}

// scene is one election. Its candidates and observers use link, and an operator uses store.
type scene struct {
	*testing.T
	store operated
	link  driver.Store
}

// over returns the same scene for candidates with another link to the store.
func (s *scene) over(link driver.Store) *scene { return &scene{s.T, s.store, link} }

// faulty returns a link with faults, and the scene of candidates that use it. The end of the test
// waits for requests that are still under way, when all elections that were started later have
// ended.
func (s *scene) faulty(plan ...faults.Plan) (faults.Store, *scene) {
	f := faults.New(s.link, 1, append(plan, faults.Plan{})[0])
	s.Cleanup(func() {
		f.Heal()
		f.Wait()
	})
	return f, s.over(f)
}

// put writes bytes under the key of the election, as another program might.
func (s *scene) put(format string, args ...any) driver.Version {
	return s.store.Put(key, fmt.Appendf(nil, format, args...))
}

// read returns the state of the election in the store.
func (s *scene) read() driver.Entry {
	s.Helper()
	e, err := s.store.Read(context.Background(), key)
	s.is("reading", err, nil)
	return e
}

// record returns the record of the election in the store.
func (s *scene) record() record.Record {
	s.Helper()
	r, err := record.Decode(s.read().Value)
	s.is("decoding", err, nil)
	return r
}

// is fails the test unless an error is, or wraps, the wanted one.
func (s *scene) is(what string, err, want error) {
	s.Helper()
	if !errors.Is(err, want) {
		s.Errorf("%s: got %v, want %v", what, err, want)
	}
}

// asked waits until the work of a term is asked to finish, and checks why.
func (s *scene) asked(term *tenure.Term, want error) {
	s.Helper()
	within(s.T, time.Minute, term.Context().Done(), "request to finish")
	s.is("the cause of the context of the work", context.Cause(term.Context()), want)
}

// ended waits at most some time until a term is over, and checks why.
func (s *scene) ended(term *tenure.Term, most time.Duration, want error) {
	s.Helper()
	within(s.T, most, term.LeaseContext().Done(), "end of the term")
	s.is("the cause of the context of the lease", context.Cause(term.LeaseContext()), want)
	s.is("Err", term.Err(), want)
	s.is("Err", term.Err(), tenure.ErrLost)
}

// holds fails the test unless a term goes on, and its work is not asked to finish.
func (s *scene) holds(term *tenure.Term) {
	s.Helper()
	if term.Err() != nil || term.Context().Err() != nil {
		s.Errorf("term %d is over: %v; the context of the work: %v", term.Token(), term.Err(), context.Cause(term.Context()))
	}
}

// follows fails the test unless a term is the successor of one that is over.
func (s *scene) follows(next, term *tenure.Term) {
	s.Helper()
	if next.Token() <= term.Token() || term.Err() == nil {
		s.Errorf("token %d after token %d, whose term has the error %v", next.Token(), term.Token(), term.Err())
	}
}

func (s *scene) resign(term *tenure.Term) {
	s.Helper()
	s.is("Resign", term.Resign(context.Background()), nil)
}

// set changes settings.
type set = func(*tenure.Config)

func settings(id string, change ...set) tenure.Config {
	cfg := tenure.Config{ID: id, Lease: lease}
	for _, set := range change {
		set(&cfg)
	}
	return cfg
}

// patientAfterDecline makes a candidate that declined wait.
func patientAfterDecline(c *tenure.Config) {
	c.Tuning.Backoff = func(n int) time.Duration { return time.Duration(n) * time.Hour }
}

func priority(n int) set               { return func(c *tenure.Config) { c.Priority = n } }
func finishWithin(d time.Duration) set { return func(c *tenure.Config) { c.FinishWithin = d } }
func leaseOf(d time.Duration) set      { return func(c *tenure.Config) { c.Lease = d } }
func withClock(by clock.Clock) set     { return func(c *tenure.Config) { c.Clock = by } }
func onEvent(f func(tenure.Event)) set { return func(c *tenure.Config) { c.OnEvent = f } }
func grace(d time.Duration) set        { return func(c *tenure.Config) { c.Tuning.Grace = d } }
func nomineeOnly(c *tenure.Config)     { c.Nomination.Only = true }

func nominated(by nomination.Nominator) set {
	return func(c *tenure.Config) { c.Nomination.Nominator = nomination.By(by).Nominator }
}

// damage is an error of a damaged record or store.
func damage(kind driver.Damage) error { return &tenure.StoreError{Kind: kind} }

// process is one election in one process: a candidate once it is started, else an observer.
type process struct {
	*tenure.Election
	diary
	s    *scene
	stop context.CancelFunc
	won  chan *tenure.Term
	done <-chan error // the result of Run or Join
}

// new returns a process in virtual time, which notes its events.
func (s *scene) new(id string, change ...set) *process {
	s.Helper()
	p := &process{s: s}
	var err error
	if p.Election, err = tenure.New(s.link, key, settings(id, append([]set{onEvent(p.note)}, change...)...)); err != nil {
		s.Fatal(err)
	}
	return p
}

// holdOn is work that waits until it is asked to finish.
func holdOn(ctx context.Context, _ *tenure.Term) error {
	<-ctx.Done()
	return nil
}

// returns is work that ends at once.
func returns(err error) tenure.Lead { return func(context.Context, *tenure.Term) error { return err } }

// takes is work that takes some time to finish once it is asked to, with its lease held.
func (s *scene) takes(finishing time.Duration) tenure.Lead {
	return func(ctx context.Context, term *tenure.Term) error {
		<-ctx.Done()
		time.Sleep(finishing)
		s.is("Err while finishing", term.Err(), nil)
		return nil
	}
}

// start runs an election. The end of the test stops it and waits for it, if the test has not.
func (p *process) start(work tenure.Lead) *process {
	var ctx context.Context
	ctx, p.stop = context.WithCancel(context.Background())
	won, done, over := make(chan *tenure.Term, 100), make(chan error, 1), make(chan struct{})
	p.won, p.done = won, done
	stop := p.stop
	go func() {
		defer close(over)
		done <- p.Run(ctx, func(ctx context.Context, term *tenure.Term) error {
			won <- term
			return work(ctx, term)
		})
	}()
	p.s.Cleanup(func() {
		stop()
		within(p.s.T, time.Hour, over, "end of "+p.ID())
	})
	return p
}

// run starts a candidate whose work waits until it is asked to finish.
func (s *scene) run(id string, change ...set) *process {
	s.Helper()
	return s.new(id, change...).start(holdOn)
}

// elect starts a candidate and returns its term as well.
func (s *scene) elect(id string, change ...set) (*process, *tenure.Term) {
	s.Helper()
	p := s.run(id, change...)
	return p, p.leads()
}

// campaign returns the term that Campaign wins.
func (p *process) campaign() *tenure.Term {
	p.s.Helper()
	term, err := p.Campaign(p.s.Context())
	if err != nil {
		p.s.Fatal(err)
	}
	return term
}

// leads waits for the next term, at most a minute or the given time.
func (p *process) leads(most ...time.Duration) *tenure.Term {
	p.s.Helper()
	return within(p.s.T, append(most, time.Minute)[0], p.won, "term of "+p.ID())
}

// leadsAfter is leads, for a term that must not begin earlier.
func (p *process) leadsAfter(least, most time.Duration) *tenure.Term {
	p.s.Helper()
	before := time.Now()
	term := p.leads(most)
	if took := time.Since(before); took < least {
		p.s.Errorf("%s leads after %v, want at least %v", p.ID(), took, least)
	}
	return term
}

// idles fails the test if a term begins within some time.
func (p *process) idles(d time.Duration) {
	p.s.Helper()
	select {
	case term := <-p.won:
		p.s.Fatalf("%s leads with token %d", p.ID(), term.Token())
	case <-time.After(d):
	}
}

// end stops Run and returns its result.
func (p *process) end() error {
	p.s.Helper()
	p.stop()
	return p.result()
}

// result waits for the result of Run or Join.
func (p *process) result() error {
	p.s.Helper()
	return within(p.s.T, time.Minute, p.done, "end of "+p.ID())
}

// handOver asks the leader to hand over, by an election of its own or of another process.
func (p *process) handOver(to string) {
	p.s.Helper()
	p.s.is("HandOver", p.HandOver(p.s.Context(), to), nil)
}

func (p *process) reconfigure(change set) {
	p.s.Helper()
	p.s.is("Reconfigure", p.Reconfigure(change), nil)
}

// config returns the settings as they were given.
func (p *process) config() (cfg tenure.Config) {
	p.s.Helper()
	p.reconfigure(func(c *tenure.Config) { cfg = *c })
	return cfg
}

// waits observes until the condition holds.
func (p *process) waits(ok func(tenure.Status) bool) tenure.Status {
	p.s.Helper()
	status, err := p.Wait(p.s.Context(), ok)
	p.s.is("Wait", err, nil)
	return status
}

// sees observes until this candidate leads. "": until nobody leads.
func (p *process) sees(leader string) tenure.Status {
	p.s.Helper()
	return p.waits(func(s tenure.Status) bool { return s.Leader.ID == leader })
}

// observe observes until stop is called.
func (p *process) observe() (stop func()) {
	ctx, cancel := context.WithCancel(p.s.Context())
	go func() {
		for range p.Watch(ctx) {
		}
	}()
	return cancel
}

func (p *process) state(want tenure.State) {
	p.s.Helper()
	if s := p.Status(); s.State != want {
		p.s.Errorf("%s is %s, want %s", p.ID(), s.State, want)
	}
}

// reports fails the test unless the first event of a kind has this cause. It returns that event.
func (p *process) reports(kind tenure.EventKind, cause error) tenure.Event {
	p.s.Helper()
	synctest.Wait()
	e := p.find(kind)
	if e == nil {
		p.s.Fatalf("%s has no event %q: %v", p.ID(), kind, p.events)
	}
	p.s.is("the cause of "+string(kind), e.Cause, cause)
	return *e
}

// hides fails the test if there is an event of a kind.
func (p *process) hides(kind tenure.EventKind) {
	p.s.Helper()
	synctest.Wait()
	if e := p.find(kind); e != nil {
		p.s.Errorf("%s has the event %+v", p.ID(), *e)
	}
}

// diary records the events of an election.
type diary struct {
	mu     sync.Mutex
	events []tenure.Event
}

func (d *diary) note(e tenure.Event) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.events = append(d.events, e)
}

// all returns the events of a kind.
func (d *diary) all(kind tenure.EventKind) []tenure.Event {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(d.events), func(e tenure.Event) bool { return e.Kind != kind })
}

func (d *diary) find(kind tenure.EventKind) *tenure.Event {
	if all := d.all(kind); len(all) > 0 {
		return &all[0]
	}
	return nil
}

// group is a Group in virtual time.
type group struct {
	*tenure.Group
	s *scene
}

func (s *scene) group(id string, change ...set) group {
	s.Helper()
	g, err := tenure.NewGroup(s.link, settings(id, change...))
	if err != nil {
		s.Fatal(err)
	}
	return group{g, s}
}

// new returns the election of the key that all tests use, or of the given name.
func (g group) new(name ...string) *process {
	g.s.Helper()
	e, err := g.Election(append(name, key)[0])
	if err != nil {
		g.s.Fatal(err)
	}
	return &process{Election: e, s: g.s}
}

// many returns n elections. The first is that of the key that all tests use.
func (g group) many(n int) []*process {
	all := []*process{g.new()}
	for i := range n - 1 {
		all = append(all, g.new(fmt.Sprintf("%s-%d", key, i)))
	}
	return all
}

// join joins an election until its stop is called.
func (g group) join(p *process, handler tenure.Handler) *process {
	g.s.Helper()
	ctx, stop := context.WithCancel(g.s.Context())
	p.stop = stop
	g.joinIn(ctx, p, handler)
	return p
}

func (g group) joinIn(ctx context.Context, p *process, handler tenure.Handler) {
	g.s.Helper()
	var err error
	if p.done, err = g.Join(ctx, p.Election, handler); err != nil {
		g.s.Fatal(err)
	}
}

// joinAll joins elections with one context. The returned function ends them.
func (g group) joinAll(all []*process, handler tenure.Handler) (end func()) {
	g.s.Helper()
	ctx, stop := context.WithCancel(g.s.Context())
	for _, p := range all {
		g.joinIn(ctx, p, handler)
	}
	return func() {
		g.s.Helper()
		stop()
		for _, p := range all {
			g.s.is("the end of "+p.Name(), p.result(), nil)
		}
	}
}

// termCounter is a Handler without a goroutine. It counts the terms.
type termCounter struct{ led atomic.Int64 }

func (w *termCounter) Elected(context.Context, *tenure.Term) (stop func(context.Context) error, err error) {
	w.led.Add(1)
	return func(context.Context) error { return nil }, nil
}

// within receives from c, or fails after d of virtual time.
func within[T any](t *testing.T, d time.Duration, c <-chan T, name string) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(d):
		t.Fatalf("no %s within %v", name, d)
		panic("unreachable")
	}
}
