package fleet_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/faults"
	"github.com/tenure-go/tenure/driver/memory"
	"github.com/tenure-go/tenure/fleet"
)

// lease is the lease of the elections. Virtual time costs nothing.
const lease = 30 * time.Second

// scene is a test of a fleet with this many elections.
type scene struct {
	elections int
	play      func(p *port)
}

// scenes are tests, each with the property that it shows.
type scenes map[string]scene

// play plays each scene in a synctest bubble: over these stores, by default one that pushes and one
// that must be polled.
func (all scenes) play(t *testing.T, stores ...func() driver.Store) {
	if stores == nil {
		stores = []func() driver.Store{watched, polled}
	}
	for name, s := range all {
		for i, open := range stores {
			t.Run(fmt.Sprint(name, "/", i), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { s.play(newPort(t, open(), s.elections)) })
			})
		}
	}
}

func watched() driver.Store { return memory.New() }
func polled() driver.Store  { return memory.NewPolled() }

// port holds the members of a fleet, and the leader of each election.
type port struct {
	t     *testing.T
	store driver.Store
	names []string
	// work is the work of all members, and works replaces it for some. nil waits until it is asked
	// to finish. steady selects work without a goroutine.
	work   tenure.Lead
	works  map[string]tenure.Lead
	steady bool
	cutOff bool // members start without a connection to the store

	mu      sync.Mutex
	members map[string]*member
	terms   map[string][]held // by election: terms whose work has not returned
	began   int               // the number of terms that have begun
	vacant  map[string]time.Time
	gap     time.Duration // the longest time for which an election had no running work
}

type held struct {
	by   string
	term *tenure.Term
}

func newPort(t *testing.T, store driver.Store, elections int) *port {
	p := &port{t: t, store: store, members: map[string]*member{}, terms: map[string][]held{}, vacant: map[string]time.Time{}}
	for i := range elections {
		p.names = append(p.names, fmt.Sprintf("shard-%03d", i))
	}
	t.Cleanup(p.close)
	return p
}

// pushed reports whether the store pushes changes.
func (p *port) pushed() bool {
	return driver.AbilitiesOf(p.store).Watcher != nil
}

// member is one process.
type member struct {
	id    string
	port  *port
	fleet *fleet.Fleet
	line  faults.Store
	stop  context.CancelFunc
	done  chan error
}

func (p *port) config(id string) fleet.Config {
	return fleet.Config{
		Election:  tenure.Config{ID: id, Lease: lease},
		Elections: p.names,
	}
}

// join starts members with these IDs.
func (p *port) join(ids ...string) {
	p.t.Helper()
	p.joinWith(func(*fleet.Config) {}, ids...)
}

func (p *port) joinWith(change func(*fleet.Config), ids ...string) {
	p.t.Helper()
	for _, id := range ids {
		cfg := p.config(id)
		change(&cfg)
		m := &member{id: id, port: p, line: faults.New(p.store, 1, faults.Plan{}), done: make(chan error, 1)}
		var err error
		if m.fleet, err = fleet.New(m.line, "test", cfg); err != nil {
			p.t.Fatal(err)
		}
		if p.cutOff {
			m.line.Partition()
		}
		p.run(m)
	}
}

// set gives members another list of elections.
func (p *port) set(names []string, ids ...string) {
	p.t.Helper()
	for _, id := range ids {
		if err := p.member(id).fleet.SetElections(names); err != nil {
			p.t.Fatal(err)
		}
	}
}

// rest waits until long after a change. Then these members lead all elections evenly.
func (p *port) rest(ids ...string) {
	p.t.Helper()
	time.Sleep(calm)
	p.spread(ids...)
}

// run runs a member, possibly not for the first time.
func (p *port) run(m *member) {
	var ctx context.Context
	ctx, m.stop = context.WithCancel(context.Background())
	p.mu.Lock()
	p.members[m.id] = m
	p.mu.Unlock()
	var work tenure.Handler = tenure.Lead(m.lead)
	if p.steady {
		work = steady{m}
	}
	go func() { m.done <- m.fleet.Run(ctx, work) }()
}

// steady is the work of a member that needs no goroutine.
type steady struct{ *member }

func (s steady) Elected(_ context.Context, term *tenure.Term) (stop func(context.Context) error, err error) {
	s.port.begin(s.id, term)
	return func(context.Context) error {
		s.port.end(term)
		return nil
	}, nil
}

// lead records the leader.
func (m *member) lead(ctx context.Context, term *tenure.Term) error {
	m.port.begin(m.id, term)
	defer m.port.end(term)
	work := m.port.work
	if own := m.port.works[m.id]; own != nil {
		work = own
	}
	if work != nil {
		return work(ctx, term)
	}
	<-ctx.Done()
	return nil
}

// begin detects two leaders of one election.
func (p *port) begin(by string, term *tenure.Term) {
	p.mu.Lock()
	defer p.mu.Unlock()
	name := term.Election()
	for _, other := range p.terms[name] {
		if other.term.Err() == nil && term.Err() == nil {
			p.t.Errorf("%s: %s leads while %s does", name, by, other.by)
		}
	}
	p.terms[name] = append(p.terms[name], held{by, term})
	p.began++
	if since, ok := p.vacant[name]; ok {
		p.gap = max(p.gap, time.Since(since))
		delete(p.vacant, name)
	}
}

func (p *port) end(term *tenure.Term) {
	p.mu.Lock()
	defer p.mu.Unlock()
	name := term.Election()
	p.terms[name] = slices.DeleteFunc(p.terms[name], func(h held) bool { return h.term == term })
	if len(p.terms[name]) == 0 {
		p.vacant[name] = time.Now()
	}
}

// forget restarts the counts.
func (p *port) forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.began, p.gap = 0, 0
}

// moved returns how many terms have begun since forget, and the longest time for which an election
// had no leader.
func (p *port) moved() (terms int, gap time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.began, p.gap
}

// leads returns how many elections each member leads now.
func (p *port) leads() map[string]int {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := map[string]int{}
	for _, terms := range p.terms {
		for _, h := range terms {
			if h.term.Err() == nil {
				all[h.by]++
			}
		}
	}
	return all
}

// tokens returns the tokens of a member's present terms, by election.
func (p *port) tokens(id string) map[string]uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := map[string]uint64{}
	for name, terms := range p.terms {
		for _, h := range terms {
			if h.by == id && h.term.Err() == nil {
				all[name] = h.term.Token()
			}
		}
	}
	return all
}

// spread fails the test unless these members lead all elections, and none of them leads too many.
func (p *port) spread(ids ...string) {
	p.t.Helper()
	rounded := (len(p.names) + len(ids) - 1) / len(ids)
	for id, n := range p.leads() {
		if !slices.Contains(ids, id) {
			p.t.Errorf("%s leads %d", id, n)
		}
		if n > rounded && 10*n*len(ids) > 11*len(p.names) {
			p.t.Errorf("%s leads %d of %d elections, one of %d members", id, n, len(p.names), len(ids))
		}
	}
	p.led()
	for _, id := range ids {
		if p.t.Failed() {
			s := p.member(id).fleet.Status()
			p.t.Logf("%s: %+v", id, s)
		}
	}
}

// led fails the test unless all elections have a leader.
func (p *port) led() {
	p.t.Helper()
	all := 0
	for _, n := range p.leads() {
		all += n
	}
	if all != len(p.names) {
		p.t.Errorf("%d of %d elections are led: %v", all, len(p.names), p.leads())
	}
}

// leave ends members gracefully and waits for that.
func (p *port) leave(ids ...string) {
	p.t.Helper()
	for _, id := range ids {
		p.member(id).stop()
	}
	for _, id := range ids {
		select {
		case err := <-p.member(id).done:
			if err != nil {
				p.t.Errorf("%s: %v", id, err)
			}
		case <-time.After(5 * time.Minute):
			p.t.Fatalf("%s does not end", id)
		}
		p.drop(id)
	}
}

// crash cuts a member off permanently.
func (p *port) crash(id string) { p.member(id).line.Partition() }

// refuse makes the store refuse requests of members at once, so that they may try again soon. With
// false, it ends that.
func (p *port) refuse(yes bool, ids ...string) {
	var plan faults.Plan
	if yes {
		plan.Chances = faults.Chances{faults.Fail: 1, faults.Drop: 1}
	}
	for _, id := range ids {
		p.member(id).line.SetPlan(plan)
	}
}

func (p *port) member(id string) *member {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.members[id]
}

func (p *port) drop(id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.members, id)
}

// close ends all remaining members, within the bubble.
func (p *port) close() {
	p.mu.Lock()
	left := slices.Collect(maps.Values(p.members))
	p.mu.Unlock()
	for _, m := range left {
		m.stop()
		m.line.Heal()
	}
	for _, m := range left {
		if err := <-m.done; err != nil && !errors.Is(err, context.Canceled) {
			p.t.Errorf("%s: %v", m.id, err)
		}
	}
}
