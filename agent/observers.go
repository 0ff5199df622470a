package agent

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/clock"
	"github.com/tenure-go/tenure/nomination"
)

const (
	// observedMost bounds the elections that are observed at one time.
	observedMost = 1000
	// idleFor is how long an election is observed after the last client has asked about it.
	idleFor = time.Minute
	// deniedFor is the time between two tries to read an election that the store denies.
	deniedFor = 10 * time.Second
)

var (
	errObserved = fmt.Errorf("the agent observes %d elections already", observedMost)
	errWaiting  = errors.New("as many clients as may wait for news of elections do so already")
)

// observers observe the elections that clients ask about: one observer for each, which all clients
// share.
type observers struct {
	clock   clock.Clock
	group   *tenure.Group
	process string // random: distinguishes the versions of this process from others
	running sync.WaitGroup
	closing chan struct{} // closed when the agent shuts down

	mu      sync.Mutex
	closed  bool
	all     map[string]*observed
	most    int // clients that may wait at one time
	waiting int
	last    uint64 // the number of the last version
}

// observed is one election that is observed.
type observed struct {
	of       *observers
	election *tenure.Election
	cancel   context.CancelFunc
	looking  sync.Mutex // so that an earlier look at the election does not replace a later one

	// under the lock of observers
	clients int
	idle    func() bool   // stops the timer that ends it; nil while clients ask
	now     sighting      // without a version until the store has answered or failed
	changed chan struct{} // closed at the next change of now
}

func newObservers(a *Agent) (*observers, error) {
	cfg := a.cfg.Election
	cfg.Metrics, cfg.OnEvent = nil, nil // it takes no part
	cfg.Nomination = nomination.Config{}
	group, err := tenure.NewGroup(a.store, cfg)
	if err != nil {
		return nil, err
	}
	return &observers{
		clock: a.clock, group: group, process: strconv.FormatUint(rand.Uint64(), 36), closing: make(chan struct{}),
		all: map[string]*observed{}, most: a.cfg.MaxWaiting,
	}, nil
}

// follow returns the observer of an election, which lasts until the returned function is called,
// and a while longer.
func (o *observers) follow(name string) (*observed, func(), error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	one := o.all[name]
	switch {
	case o.closed:
		return nil, nil, errClosed
	case one == nil && len(o.all) >= observedMost:
		return nil, nil, errObserved
	case one == nil:
		e, err := o.group.Election(name)
		if err != nil {
			return nil, nil, err
		}
		ctx, cancel := context.WithCancel(context.Background())
		one = &observed{of: o, election: e, cancel: cancel, now: sighting{Election: name, State: unknown}, changed: make(chan struct{})}
		o.all[name] = one
		o.running.Go(func() { one.watch(ctx) })
	}
	if one.idle != nil {
		one.idle()
		one.idle = nil
	}
	one.clients++
	return one, one.release, nil
}

// release notes that a client asks no longer.
func (b *observed) release() {
	b.of.mu.Lock()
	defer b.of.mu.Unlock()
	b.clients--
	if b.clients > 0 || b.of.closed {
		return
	}
	b.idle = b.of.clock.AfterFunc(idleFor, func() {
		b.of.mu.Lock()
		defer b.of.mu.Unlock()
		if b.clients == 0 && b.of.all[b.election.Name()] == b {
			b.end()
		}
	})
}

// end ends the observation, under the lock.
func (b *observed) end() {
	delete(b.of.all, b.election.Name())
	b.cancel()
	b.of.group.Leave(b.election)
}

// close ends all observations and streams.
func (o *observers) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return
	}
	o.closed = true
	close(o.closing)
	for _, one := range o.all {
		if one.idle != nil {
			one.idle()
		}
		one.end()
	}
}

// watch observes until ctx ends. If the store denies reading, it tries again later, since an
// operator may grant the right.
func (b *observed) watch(ctx context.Context) {
	for ctx.Err() == nil {
		for _, err := range b.election.Watch(ctx) {
			b.look()
			if err != nil {
				break
			}
		}
		again := make(chan struct{})
		stop := b.of.clock.AfterFunc(deniedFor, func() { close(again) })
		select {
		case <-again:
		case <-ctx.Done():
			stop()
		}
	}
}

func (b *observed) see(now sighting) {
	b.of.mu.Lock()
	defer b.of.mu.Unlock()
	if b.now.Version != "" && b.now.equal(&now) {
		return
	}
	b.of.last++
	now.Version = b.of.process + "-" + strconv.FormatUint(b.of.last, 10)
	b.now = now
	close(b.changed)
	b.changed = make(chan struct{})
}

// look returns the last sighting, and a channel that is closed at the next change. It reads the
// clock: a lease may have run out since the last change.
func (b *observed) look() (sighting, <-chan struct{}) {
	b.looking.Lock()
	defer b.looking.Unlock()
	now, known := sight(b.election, b.of.clock)
	if known {
		b.see(now)
	}
	b.of.mu.Lock()
	defer b.of.mu.Unlock()
	latest := b.now
	latest.SeenMillis = now.SeenMillis
	return latest, b.changed
}

// await returns the last sighting, as soon as its version is known and another one than since, and
// otherwise after this time.
func (b *observed) await(ctx context.Context, since string, within time.Duration) sighting {
	patience := time.NewTimer(within)
	defer patience.Stop()
	for {
		now, changed := b.look()
		if now.Version != "" && now.Version != since {
			return now
		}
		select {
		case <-changed:
			continue
		case <-patience.C:
		case <-ctx.Done():
		case <-b.of.closing:
		}
		now, _ = b.look()
		return now
	}
}

// wait reserves a place for a client that waits for news, until the returned function is called.
func (o *observers) wait() (leave func(), err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.waiting >= o.most {
		return nil, errWaiting
	}
	o.waiting++
	return func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.waiting--
	}, nil
}

// list returns the elections that are observed, in no order.
func (o *observers) list() []*observed {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Collect(maps.Values(o.all))
}
