package tenure_test

import (
	"context"
	"fmt"
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
)

// operated is a memory store with the methods of an operator, with or without Watch.
type operated interface {
	driver.Store
	Put(key string, value []byte) driver.Version
	Delete(key string) driver.Version
	Purge(key string)
}

// bubbles runs a test in a synctest bubble, once over a store that pushes and once over one that
// must be polled.
func bubbles(t *testing.T, test func(t *testing.T, store operated)) {
	t.Helper()
	for name, open := range map[string]func() operated{
		"watched": func() operated { return memory.New() },
		"polled":  func() operated { return memory.NewPolled() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { test(t, open()) })
		})
	}
}

const key = "job"

// lease is the lease in these tests. Virtual time costs nothing.
const lease = 15 * time.Second

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

func (d *diary) find(kind tenure.EventKind) *tenure.Event {
	d.mu.Lock()
	defer d.mu.Unlock()
	for i := range d.events {
		if d.events[i].Kind == kind {
			return &d.events[i]
		}
	}
	return nil
}

func (d *diary) count(kind tenure.EventKind) (n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for i := range d.events {
		if d.events[i].Kind == kind {
			n++
		}
	}
	return n
}

// mustNew returns a candidate in virtual time.
func mustNew(t *testing.T, store driver.Store, id string, change func(*tenure.Config)) *tenure.Election {
	t.Helper()
	e, err := tenure.New(store, key, settings(id, change))
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func settings(id string, change func(*tenure.Config)) tenure.Config {
	cfg := tenure.Config{ID: id, Lease: lease, Clock: clock.Standard{}}
	if change != nil {
		change(&cfg)
	}
	return cfg
}

// group is a Group in virtual time.
type group struct {
	*testing.T
	*tenure.Group
}

func mustNewGroup(t *testing.T, store driver.Store, id string, change func(*tenure.Config)) group {
	t.Helper()
	g, err := tenure.NewGroup(store, settings(id, change))
	if err != nil {
		t.Fatal(err)
	}
	return group{t, g}
}

// election returns the election of the key that all tests use, or of the given name.
func (g group) election(name ...string) *tenure.Election {
	g.Helper()
	e, err := g.Election(append(name, key)[0], nil)
	if err != nil {
		g.Fatal(err)
	}
	return e
}

// elections returns n elections. The first is that of the key that all tests use.
func (g group) elections(n int) []*tenure.Election {
	all := []*tenure.Election{g.election()}
	for i := range n - 1 {
		all = append(all, g.election(fmt.Sprintf("%s-%d", key, i)))
	}
	return all
}

func (g group) join(ctx context.Context, e *tenure.Election, handler tenure.Handler) (ended <-chan error) {
	g.Helper()
	ended, err := g.Join(ctx, e, handler)
	if err != nil {
		g.Fatal(err)
	}
	return ended
}

// joinAll joins all these elections.
func (g group) joinAll(ctx context.Context, all []*tenure.Election, handler tenure.Handler) (ends []<-chan error) {
	g.Helper()
	for _, e := range all {
		ends = append(ends, g.join(ctx, e, handler))
	}
	return ends
}

// termCounter is a Handler without a goroutine. It counts the terms.
type termCounter struct{ led atomic.Int64 }

func (w *termCounter) Elected(context.Context, *tenure.Term) error { w.led.Add(1); return nil }
func (w *termCounter) Stop(context.Context, *tenure.Term) error    { return nil }

// running is a Run in the background with its state.
type running struct {
	election *tenure.Election
	stop     context.CancelFunc
	won      chan *tenure.Term
	done     chan error
	over     chan struct{} // closed when Run has returned
}

// holdOn is work that waits until it is asked to finish.
func holdOn(ctx context.Context, _ *tenure.Term) error {
	<-ctx.Done()
	return nil
}

// start runs an election. The end of the test stops it and waits for it, if the test has not.
func start(t *testing.T, e *tenure.Election, work tenure.Lead) *running {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	r := &running{
		election: e, stop: stop, won: make(chan *tenure.Term, 100), done: make(chan error, 1), over: make(chan struct{}),
	}
	go func() {
		defer close(r.over)
		r.done <- e.Run(ctx, func(ctx context.Context, term *tenure.Term) error {
			r.won <- term
			return work(ctx, term)
		})
	}()
	t.Cleanup(func() {
		stop()
		within(t, time.Hour, r.over, "end of "+e.ID())
	})
	return r
}

// elect starts a candidate, whose work waits until it is asked to finish, and returns its term.
func elect(t *testing.T, store driver.Store, id string, change func(*tenure.Config)) (*running, *tenure.Term) {
	t.Helper()
	r := start(t, mustNew(t, store, id, change), holdOn)
	return r, within(t, time.Minute, r.won, "term of "+id)
}

// campaign returns the term that Campaign wins.
func campaign(t *testing.T, e *tenure.Election) *tenure.Term {
	t.Helper()
	term, err := e.Campaign(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return term
}

// handOver asks the leader to hand over, by an election of this or another process.
func handOver(t *testing.T, by *tenure.Election, to string) {
	t.Helper()
	if err := by.HandOver(t.Context(), to); err != nil {
		t.Fatal(err)
	}
}

// faulty returns the store with faults. The end of the test waits for requests that are still under
// way, when all elections that were started later have ended.
func faulty(t *testing.T, store driver.Store, plan ...faults.Plan) faults.Store {
	f := faults.New(store, 1, append(plan, faults.Plan{})[0])
	t.Cleanup(f.Wait)
	return f
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

func (r *running) end(t *testing.T) error {
	t.Helper()
	r.stop()
	return within(t, time.Minute, r.done, "end of "+r.election.ID())
}
