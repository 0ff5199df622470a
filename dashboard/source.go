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
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/internal/records"
)

// source observes the elections of one store.
type source struct {
	Source
	hub     *hub
	history *history
	reports *reports
	jobs    *jobs

	mu        sync.Mutex
	store     driver.Store  // nil: not reached yet
	reads     driver.Store  // the same, with few reads at once if candidates use it, too
	group     *tenure.Group // of that store
	elections map[string]*election
	problem   trouble   // why the elections cannot be listed, or are not all shown
	listed    time.Time // when the elections were last listed
	outages   []outage  // the last one may go on

	troubles chan failure  // the first that was not looked into
	answers  chan struct{} // the store has answered
	relist   chan struct{} // lists the elections at once
}

// maxElections bounds the memory that a store's list can take.
const maxElections = 20_000

var errFull = fmt.Errorf("only the first %d elections are shown", maxElections)

func newSource(of Source, h *hub, kept *history) *source {
	s := &source{
		Source: of, hub: h, history: kept, elections: map[string]*election{}, outages: kept.outagesOf(of.Name),
		troubles: make(chan failure, 1), answers: make(chan struct{}, 1), relist: make(chan struct{}, 1),
	}
	s.jobs = newJobs(func(election string) { h.changed(key{of.Name, election}) })
	s.reports = newReports(&of, h, func(election string) bool { return s.find(election) != nil })
	return s
}

// run observes until ctx ends.
func (s *source) run(ctx context.Context) {
	var tasks sync.WaitGroup
	defer tasks.Wait()
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
	tasks.Go(func() { s.watch(ctx) })
	tasks.Go(func() { s.followTrouble(ctx) })
	tasks.Go(func() { s.jobs.follow(ctx, s.reads) })
	able := driver.AbilitiesOf(store)
	if able.Presence != nil {
		tasks.Go(func() { s.reports.ask(ctx, able.Presence) })
	}
	if len(s.Elections) > 0 {
		s.add(s.Elections)
		return
	}
	s.follow(ctx)
}

// watch applies the statuses of all elections until ctx ends. If the store denies reading one, it
// tries again later, since an operator may grant the right.
func (s *source) watch(ctx context.Context) {
	for status, err := range s.group.Watch(ctx) {
		one := s.find(status.Election)
		if err == nil {
			one.onStatus(status)
			continue
		}
		time.AfterFunc(retryDeniedEvery, func() {
			if ctx.Err() == nil {
				s.observeAgain(one)
			}
		})
	}
}

// follow lists the elections until ctx ends.
func (s *source) follow(ctx context.Context) {
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
	reads := store
	if s.Store != nil {
		reads = limitReads(store)
	}
	tapped := records.Tap(reads, func(name string, e driver.Entry, pushed bool) {
		s.find(name).onEntry(e, pushed, time.Now())
		if !e.Unverified {
			offer(s.answers, struct{}{})
		}
	})
	group, err := tenure.NewGroup(tapped, s.observerConfig(store, func(e tenure.Event) {
		s.find(e.Election).onEvent(e)
		if e.Kind == tenure.EventTrouble {
			offer(s.troubles, failure{e.Time, e.Cause})
		}
	}))
	s.mu.Lock()
	defer s.mu.Unlock()
	s.store, s.reads, s.group = store, reads, group
	return err
}

const cannotList = "this store cannot list its elections: name them"

// list adds the elections that the store has by now, and those that have vanished leave.
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
		names, jobs := s.jobs.known.Split(bounded, s.reads, names)
		s.jobs.list(jobs)
		s.add(names)
		s.leave(names, time.Now())
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

// add observes the elections that are not observed yet, and reports the last problem with them.
func (s *source) add(names []string) {
	added, problem := false, ""
	for _, name := range names {
		one, err := s.observe(name)
		if added = added || one; err != nil {
			problem = err.Error()
		}
	}
	s.report(trouble{Reason: problem})
	if added {
		s.hub.changed(key{Source: s.Name})
	}
}

// observe adds an election to the group, unless it is there. What watch, or the store, shows of it
// waits for the lock.
func (s *source) observe(name string) (added bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	one := s.elections[name]
	switch {
	case one != nil && one.observed != nil:
		return false, nil
	case one == nil && len(s.elections) >= maxElections:
		return false, errFull
	}
	e, err := s.group.Election(name)
	if err != nil {
		return false, err
	}
	if one == nil {
		one = &election{key: key{s.Name, name}, pushed: pushes(s.store), interval: s.interval(), hub: s.hub, history: s.history, store: s.store}
		one.resume(s.history.of(one.key))
		s.elections[name] = one
		s.history.forget(one.key)
	}
	one.observed = e
	return true, nil
}

// observeAgain observes an election from the beginning.
func (s *source) observeAgain(one *election) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if one.observed != nil {
		s.group.Leave(one.observed)
		one.observed, _ = s.group.Election(one.key.Name) // the name is valid
	}
}

// leave ends the observation of elections whose record has vanished and is not listed. They stay on
// the page. A candidate that is still there puts a record, which is listed.
func (s *source) leave(listed []string, now time.Time) {
	there := make(map[string]bool, len(listed))
	for _, name := range listed {
		there[name] = true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.listed = now
	for name, one := range s.elections {
		if !there[name] && one.observed != nil && one.vanished(now) {
			s.group.Leave(one.observed)
			one.observed = nil
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
