package electiontest

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/internal/test/kit"
	"github.com/tenure-go/tenure/internal/test/wait"
)

// contest is a trial of one election.
type contest struct {
	*trial
	real     kit.Reporter // takes breaches of safety, which are never held back
	breached atomic.Bool
	election string
	lease    time.Duration

	ctx  context.Context
	stop context.CancelFunc
	all  sync.WaitGroup

	mu     sync.Mutex
	open   map[*tenure.Term]bool
	doomed *tenure.Term // the one that is to expire

	stallOnce sync.Once
	lapsed    chan struct{} // closed when another one has, or could not be released in time
}

func newContest(t *trial, lease time.Duration) *contest {
	c := &contest{
		trial: t, real: t.Reporter, election: kit.Key("election"), lease: lease,
		open: map[*tenure.Term]bool{}, lapsed: make(chan struct{}),
	}
	c.ctx, c.stop = context.WithCancel(context.Background())
	return c
}

// close ends all elections and waits for them.
func (c *contest) close() {
	c.stop()
	c.all.Wait()
	for term := range c.open {
		_ = term.Resign(context.Background()) // bounded by itself
	}
}

// limit is how long anything may take that comes to be at all: the slowest is a record to be waited
// out, twice.
func (c *contest) limit() time.Duration { return c.left() + 4*c.lease }

// begins takes note of a new term. A valid term beside it is the fault that elections must prevent.
// A lease that expires unplanned is that of a machine that has stalled.
func (c *contest) begins(term *tenure.Term) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for other := range c.open {
		// In this order: the other was valid after this one began.
		if other.Err() == nil && term.Err() == nil {
			c.breach("term %d began while term %d went on", term.Token(), other.Token())
		}
	}
	c.open[term] = true
	context.AfterFunc(term.LeaseContext(), func() { c.lapses(term) })
}

// breach reports that safety is broken.
func (c *contest) breach(format string, args ...any) {
	c.breached.Store(true)
	c.real.Errorf(format, args...)
}

func (c *contest) lapses(term *tenure.Term) {
	c.mu.Lock()
	planned := term == c.doomed
	c.mu.Unlock()
	if !planned && errors.Is(term.Err(), tenure.ErrExpired) {
		c.stall()
	}
}

// stall notes that something has taken longer than a lease allows.
func (c *contest) stall() { c.stallOnce.Do(func() { close(c.lapsed) }) }

// dooms says that a term is to expire.
func (c *contest) dooms(term *tenure.Term) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.doomed = term
}

// stalled reports whether a leader has lost its lease, or could not release it, though nothing was
// wrong.
func (c *contest) stalled() bool {
	select {
	case <-c.lapsed:
		return true
	default:
		return false
	}
}

// await waits for something that should happen. A lease that was lost to a stall may prevent it.
func (c *contest) await(happened <-chan struct{}, what string) {
	c.Helper()
	late := time.NewTimer(c.limit())
	defer late.Stop()
	select {
	case <-happened:
	case <-c.lapsed:
		c.Fatalf("a lease ran out before %s", what)
	case <-late.C:
		c.Fatalf("not within %v: %s", c.limit(), what)
	}
}

// until asks again and again whether something that should happen has happened.
func (c *contest) until(what string, is func() bool) {
	c.Helper()
	if !wait.Within(c.left(), func() bool { return is() || c.stalled() }) {
		c.Fatalf("not within %v: %s", c.left(), what)
	}
	if c.stalled() {
		c.Fatalf("a lease ran out before %s", what)
	}
}

func (c *contest) candidate(id string, store driver.Store) *tenure.Election {
	c.Helper()
	e, err := tenure.New(store, c.election, tenure.Config{
		ID: id, Address: id + ".example", Lease: c.lease,
	})
	if err != nil {
		c.Fatalf("%v", err)
	}
	return e
}

// elect campaigns until elected.
func (c *contest) elect(e *tenure.Election) *tenure.Term {
	c.Helper()
	return c.elected(e, c.campaign(e))
}

// campaign campaigns in the background.
func (c *contest) campaign(e *tenure.Election) <-chan *tenure.Term {
	won := make(chan *tenure.Term, 1)
	c.all.Go(func() {
		term, err := e.Campaign(c.ctx)
		if err != nil {
			return
		}
		c.begins(term)
		won <- term
	})
	return won
}

// elected waits for the end of a campaign.
func (c *contest) elected(e *tenure.Election, won <-chan *tenure.Term) *tenure.Term {
	c.Helper()
	late := time.NewTimer(c.limit())
	defer late.Stop()
	select {
	case term := <-won:
		return term
	case <-c.lapsed:
		c.Fatalf("a lease ran out before %q was elected", e.ID())
	case <-late.C:
		s := e.Status()
		c.Fatalf("%q is not elected within %v: %+v", e.ID(), c.limit(), s)
	}
	panic("unreachable")
}

// resign releases a term, and requires that the store confirms it.
func (c *contest) resign(term *tenure.Term) {
	c.Helper()
	err := term.Resign(c.ctx)
	if err != nil {
		c.Errorf("resigning term %d: %v", term.Token(), err)
	}
	if errors.Is(err, tenure.ErrUnconfirmed) { // not within a third of the lease
		c.stall()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.open, term)
}

// sees waits until a candidate or observer sees the leader of a term.
func (c *contest) sees(e *tenure.Election, term *tenure.Term) tenure.Leader {
	c.Helper()
	ctx, cancel := context.WithTimeout(c.ctx, c.limit())
	defer cancel()
	go func() {
		select {
		case <-c.lapsed:
			cancel()
		case <-ctx.Done():
		}
	}()
	s, err := e.Wait(ctx, func(s tenure.Status) bool { return s.Leader.Term == term.Token() })
	if err != nil {
		c.Fatalf("%q does not see the leader of term %d: %v; it sees %+v", e.ID(), term.Token(), err, s)
	}
	return s.Leader
}

// ended waits until a context has ended, and returns why.
func (c *contest) ended(ctx context.Context, what string) error {
	c.Helper()
	c.await(ctx.Done(), what+" ended")
	return context.Cause(ctx)
}

// after requires that one term has a higher token than another.
func (c *contest) after(next, term *tenure.Term) {
	c.Helper()
	if next.Token() <= term.Token() {
		c.breach("token %d after %d", next.Token(), term.Token())
	}
}
