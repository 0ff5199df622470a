package dashboard

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/clock"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/internal/records"
)

// source observes the elections of one store.
type source struct {
	Source
	clock   clock.Clock
	hub     *hub
	history *history
	reports *reports

	mu        sync.Mutex
	store     driver.Store  // nil: not reached yet
	group     *tenure.Group // of that store
	elections map[string]*election
	problem   trouble   // why the elections cannot be listed, or are not all shown
	listed    time.Time // when the elections were last listed
	outages   []outage  // the last one may go on

	troubles chan failure  // the first that was not looked into
	answers  chan struct{} // the store has answered
	relist   chan struct{} // lists the elections at once

	starting sync.WaitGroup // elections that wait for the store's first answer
}

// maxElections bounds the memory that a store's list can take.
const maxElections = 20_000

func newSource(of Source, c clock.Clock, h *hub, kept *history) *source {
	s := &source{
		Source: of, clock: c, hub: h, history: kept, elections: map[string]*election{}, outages: kept.outagesOf(of.Name),
		troubles: make(chan failure, 1), answers: make(chan struct{}, 1), relist: make(chan struct{}, 1),
	}
	s.reports = newReports(&of, h, func(election string) bool { return s.find(election) != nil })
	return s
}

// run observes until ctx ends.
func (s *source) run(ctx context.Context) {
	defer s.starting.Wait()
	defer s.stopAll()
	store := s.Store
	if store == nil {
		var err error
		if store, err = s.Connect(ctx, func(why error) { s.away(time.Now(), troubleOf(why)) }); err != nil {
			s.away(time.Now(), troubleOf(err))
			return
		}
	}
	if err := s.setStore(store); err != nil {
		s.report(trouble{Reason: err.Error()})
		return
	}
	s.back(time.Now())
	drain(s.relist)
	s.starting.Go(func() { s.followTrouble(ctx) })
	able := driver.AbilitiesOf(store)
	if able.Presence != nil {
		s.starting.Go(func() { s.reports.ask(ctx, able.Presence) })
	}
	if len(s.Elections) > 0 {
		s.add(ctx, s.Elections)
		<-ctx.Done()
		return
	}
	for {
		begun := time.Now()
		s.list(ctx)
		took := time.Since(begun)
		select {
		case <-time.After(min(max(listEvery, listShare*took), listAtLeastEvery)):
		case <-s.relist:
		case <-ctx.Done():
			return
		}
	}
}

// setStore sets the store, and makes the group of its elections.
func (s *source) setStore(store driver.Store) error {
	tapped := records.Tap(store, func(name string, e driver.Entry, pushed bool) {
		if one := s.find(name); one != nil {
			one.onEntry(e, pushed, time.Now())
		}
		if !e.Unverified {
			offer(s.answers, struct{}{})
		}
	})
	if s.Store != nil {
		tapped = limitReads(tapped)
	}
	group, err := tenure.NewGroup(tapped, s.observerConfig(store, s.clock, func(e tenure.Event) {
		if one := s.find(e.Election); one != nil {
			one.onEvent(e)
		}
		if e.Kind == tenure.EventTrouble {
			offer(s.troubles, failure{e.Time, e.Cause})
		}
	}))
	s.mu.Lock()
	defer s.mu.Unlock()
	s.store, s.group = store, group
	return err
}

const cannotList = "this store cannot list its elections: name them"

// list adds the elections that the store has by now. It removes none: an election whose record was
// deleted may still have candidates.
func (s *source) list(ctx context.Context) {
	bounded, cancel := context.WithTimeout(ctx, listWithin)
	defer cancel()
	names, err := driver.AbilitiesOf(s.store).Keys(bounded)
	switch {
	case ctx.Err() != nil:
	case errors.Is(err, errors.ErrUnsupported):
		s.report(trouble{Reason: cannotList})
	case errors.Is(err, driver.ErrDenied):
		s.report(trouble{"the right to list the elections is missing: name them, or grant it", err.Error()})
	case err != nil:
		offer(s.troubles, failure{time.Now(), err})
		s.report(trouble{"the elections cannot be listed", err.Error()})
	default:
		s.add(ctx, names)
		s.mu.Lock()
		s.listed = time.Now()
		s.mu.Unlock()
	}
}

func (s *source) report(problem trouble) {
	s.mu.Lock()
	news := s.problem.Reason != problem.Reason
	s.problem = problem
	s.mu.Unlock()
	if news {
		s.hub.changed(key{Source: s.Name})
	}
}

// add observes the new ones among the elections, and reports the last problem with them.
func (s *source) add(ctx context.Context, names []string) {
	added, problem := false, ""
	for _, name := range names {
		if s.find(name) != nil {
			continue
		}
		s.mu.Lock()
		full := len(s.elections) >= maxElections
		s.mu.Unlock()
		if full {
			problem = fmt.Sprintf("only the first %d elections are shown", maxElections)
			break
		}
		if err := s.observe(ctx, name); err != nil {
			problem = err.Error()
			continue
		}
		added = true
	}
	s.report(trouble{Reason: problem})
	if added {
		s.hub.changed(key{Source: s.Name})
	}
}

func (s *source) observe(ctx context.Context, name string) error {
	e, err := s.group.Election(name, nil)
	if err != nil {
		return err
	}
	one := &election{
		key: key{s.Name, name}, pushed: pushes(s.store), interval: s.interval(), hub: s.hub, history: s.history, election: e, store: s.store,
	}
	one.resume(s.history.of(one.key))
	s.mu.Lock()
	s.elections[name] = one
	s.mu.Unlock()
	s.history.forget(one.key)
	one.stopObserving = e.Observe()
	s.starting.Go(func() { one.awaitStore(ctx) })
	return nil
}

// awaitStore waits for the store's first answer. If the store denies reading, it tries again later,
// since an operator may grant the right.
func (e *election) awaitStore(ctx context.Context) {
	for ctx.Err() == nil {
		status, err := e.election.Wait(ctx, func(now tenure.Status) bool { return now.Known })
		if err == nil {
			e.onFirstStatus(status, e.election.ID())
			return
		}
		select {
		case <-time.After(retryDeniedEvery):
		case <-ctx.Done():
		}
	}
}

func (s *source) find(name string) *election {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.elections[name]
}

// all returns the elections, in no order.
func (s *source) all() []*election {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Values(s.elections))
}

func (s *source) stopAll() {
	for _, e := range s.all() {
		e.stopObserving()
	}
}

// maxReads bounds the reads that are under way at once on a store that candidates use, too. With
// more reads, renewals could wait for a connection.
const maxReads = 8

// limitedReads is a store that makes at most maxReads reads at once.
type limitedReads struct {
	driver.Store
	slots chan struct{}
}

// limitReads returns the store with at most maxReads reads at once, and with all its abilities.
func limitReads(s driver.Store) driver.Store {
	return &limitedReads{s, make(chan struct{}, maxReads)}
}

// Abilities returns those of the store. Only reads pass through this one.
func (f *limitedReads) Abilities() driver.Abilities { return driver.AbilitiesOf(f.Store) }

// Read waits for a free slot and reads the store.
func (f *limitedReads) Read(ctx context.Context, key string) (driver.Entry, error) {
	select {
	case f.slots <- struct{}{}:
	case <-ctx.Done():
		return driver.Entry{}, ctx.Err()
	}
	defer func() { <-f.slots }()
	return f.Store.Read(ctx, key)
}
