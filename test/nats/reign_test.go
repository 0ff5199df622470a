//go:build integration

package nats

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver/natskv"
	"github.com/tenure-go/tenure/internal/witness"
	"github.com/tenure-go/tenure/test/internal/asking"
	"github.com/tenure-go/tenure/test/internal/natsd"
)

// reign is as many elections as there are servers, with as many candidates. Each elected leader
// leads on. The first leader of each election connects to another server.
type reign struct {
	*arena
	way   asking.Way
	book  witness.Book
	lines []*line
	end   func()
}

// line is the leaders of one election.
type line struct {
	name  string
	terms atomic.Int64
	last  atomic.Pointer[tenure.Term]
}

// reign elects. open creates the candidates' stores. Its argument is the number of the server to
// connect to first.
func (a *arena) reign(lease time.Duration, way asking.Way, open func(first int) *natskv.Store) *reign {
	a.tb.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	r := &reign{arena: a, way: way, end: sync.OnceFunc(func() { cancel(); all.Wait() })}
	var stores []*natskv.Store
	for i := range natsd.Members {
		stores = append(stores, open(i))
		r.lines = append(r.lines, &line{name: fmt.Sprintf("election-%d-by-%s", i, way)})
	}
	a.tb.Cleanup(r.end)
	a.prepare(r.lines, stores[0])
	for later := range natsd.Members { // the first leader of each, and then those that wait
		for i, l := range r.lines {
			n := (i + later) % natsd.Members
			run := r.candidate(l, stores[n], fmt.Sprint("c", n), lease)
			all.Go(func() { run(ctx) })
		}
		for _, l := range r.lines {
			r.succeeds(l, 1)
		}
	}
	return r
}

// prepare holds each election once. Later candidates then need not wait for a lease over a key that
// was never written.
func (a *arena) prepare(lines []*line, store *natskv.Store) {
	a.tb.Helper()
	var all sync.WaitGroup
	for _, l := range lines {
		e, err := tenure.New(store, l.name, tenure.Config{ID: "first", Lease: time.Second})
		a.must(err)
		all.Go(func() {
			if err := e.Run(a.context(), func(context.Context, *tenure.Term) error { return nil }); err != nil {
				a.tb.Error(err)
			}
		})
	}
	all.Wait()
}

func (r *reign) candidate(l *line, store *natskv.Store, id string, lease time.Duration) (run func(context.Context)) {
	asker := asking.Start(func(election string, token uint64, stamps []int64) { r.book.Add(election, id, token, stamps...) })
	e, err := tenure.New(store, l.name, tenure.Config{ID: id, Lease: lease, OnEvent: func(e tenure.Event) {
		asker.Hear(e)
		if e.Kind == tenure.EventLost || e.Kind == tenure.EventAlarm {
			r.tb.Logf("%s of %s, term %d: %v", e.ID, e.Election, e.Term, e.Cause)
		}
	}})
	r.must(err)
	return func(ctx context.Context) {
		defer asker.Stop()
		_ = e.Run(ctx, func(soft context.Context, term *tenure.Term) error {
			asker.Enter(l.name, term, r.way)
			l.last.Store(term)
			l.terms.Add(1)
			<-soft.Done()
			return nil
		})
	}
}

// succeeds waits until an election has had this many leaders.
func (r *reign) succeeds(l *line, leaders int64) {
	r.tb.Helper()
	r.eventually("leaders of "+l.name, func(context.Context) error {
		if n := l.terms.Load(); n < leaders {
			return fmt.Errorf("%d until now", n)
		}
		return nil
	})
}

// led waits until every election has a leader.
func (r *reign) led() {
	r.tb.Helper()
	for _, l := range r.lines {
		r.eventually("a leader of "+l.name, func(context.Context) error { return l.last.Load().Err() })
	}
}

// probe writes all the time, over the same connections as the first leader of each election, until
// its result is called. The result is the longest time for which each could not write.
func (a *arena) probe(open func(first int) *natskv.Store) (gaps func() []time.Duration) {
	a.tb.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	a.tb.Cleanup(cancel)
	found := make([]time.Duration, natsd.Members)
	var all sync.WaitGroup
	for i := range found {
		store := open(i)
		all.Go(func() { found[i] = longestGap(ctx, store, fmt.Sprint("probe-", i)) })
	}
	return func() []time.Duration {
		cancel()
		all.Wait()
		return found
	}
}

// longestGap returns the longest time between two writes that were acknowledged.
func longestGap(ctx context.Context, store *natskv.Store, key string) (longest time.Duration) {
	last := time.Now()
	for ; ctx.Err() == nil; time.Sleep(100 * time.Millisecond) {
		attempt, cancel := context.WithTimeout(ctx, time.Second)
		if e, err := store.Read(attempt, key); err == nil {
			if _, err := store.CompareAndSwap(attempt, key, e.Version, []byte("x")); err == nil {
				longest, last = max(longest, time.Since(last)), time.Now()
			}
		}
		cancel()
	}
	return max(longest, time.Since(last))
}

// safe checks that no two members led one election at once.
func (r *reign) safe() {
	r.tb.Helper()
	if v := r.judge(); !v.Safe() {
		r.tb.Error(v)
	}
}

// judge ends the elections.
func (r *reign) judge() witness.Verdict {
	r.tb.Helper()
	r.end()
	v := r.book.Judge()
	if v.Acts == 0 {
		r.tb.Error("no leader ever acted: this proves nothing")
	}
	return v
}
