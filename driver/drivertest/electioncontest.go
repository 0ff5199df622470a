package drivertest

import (
	"context"
	"sync"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver"
)

// contest is a trial of one election.
type contest struct {
	*trial
	election string
	lease    time.Duration

	ctx  context.Context
	stop context.CancelFunc
	all  sync.WaitGroup

	mu   sync.Mutex
	open map[*tenure.Term]bool
}

func newContest(t *trial, lease time.Duration) *contest {
	c := &contest{trial: t, election: t.key("election"), lease: lease, open: map[*tenure.Term]bool{}}
	c.ctx, c.stop = context.WithCancel(context.Background())
	return c
}

// holding makes a case of what is to be tried with an election. Its lease outlasts the stalls of a busy machine: a term that is
// lost to one would be a failure that says nothing about the store.
func holding(run func(*contest)) func(*trial) {
	return func(t *trial) {
		c := newContest(t, t.leaseOf(max(easy, t.Lease)))
		defer c.close()
		run(c)
	}
}

// leaseOf returns this lease, or the shortest that the store is for.
func (t *trial) leaseOf(lease time.Duration) time.Duration {
	if b, ok := t.Store.(driver.Bounded); ok {
		return max(lease, b.MinLease())
	}
	return lease
}

// close ends what is under way and waits for it.
func (c *contest) close() {
	c.stop()
	c.all.Wait()
	for term := range c.open {
		_ = term.Resign(context.Background()) // bounded by itself
	}
}

// limit is how long anything may take that comes to be at all: the slowest is a record to be waited out, twice.
func (c *contest) limit() time.Duration { return c.Patience + 4*c.lease }

// candidate is on package time's clock, so that the kit can be tested in virtual time.
func (c *contest) candidate(id string, store driver.Store) *tenure.Election {
	c.Helper()
	e, err := tenure.New(store, c.election, tenure.Config{
		ID: id, Address: id + ".example", Lease: c.lease, Clock: tenure.StandardClock(),
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
		c.mu.Lock()
		c.open[term] = true
		c.mu.Unlock()
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
	case <-late.C:
		s, _ := e.Status()
		c.Fatalf("%q is not elected within %v: %+v", e.ID(), c.limit(), s)
	}
	panic("unreachable")
}

// resign releases a term, and requires that the store confirms it.
func (c *contest) resign(term *tenure.Term) {
	c.Helper()
	if err := term.Resign(c.ctx); err != nil {
		c.Errorf("resigning term %d: %v", term.Token(), err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.open, term)
}

// observe keeps a candidate informed for as long as the contest lasts, so that it need not begin with a read.
func (c *contest) observe(e *tenure.Election) {
	c.all.Go(func() { _, _ = e.Wait(c.ctx, func(tenure.Status) bool { return false }) })
}

// sees waits until a candidate or observer sees the leader of a term.
func (c *contest) sees(e *tenure.Election, term *tenure.Term) tenure.Leader {
	c.Helper()
	ctx, cancel := context.WithTimeout(c.ctx, c.limit())
	defer cancel()
	s, err := e.Wait(ctx, func(s tenure.Status) bool { return s.Leader.Term == term.Token() })
	if err != nil {
		c.Fatalf("%q does not see the leader of term %d: %v; it sees %+v", e.ID(), term.Token(), err, s)
	}
	return s.Leader
}

// ended waits until a context has ended, and returns why.
func (c *contest) ended(ctx context.Context, what string) error {
	c.Helper()
	late := time.NewTimer(c.limit())
	defer late.Stop()
	select {
	case <-ctx.Done():
	case <-late.C:
		c.Fatalf("%s does not end within %v", what, c.limit())
	}
	return context.Cause(ctx)
}

// after requires that one term has a higher token than another.
func (c *contest) after(next, term *tenure.Term) {
	c.Helper()
	if next.Token() <= term.Token() {
		c.Errorf("token %d after %d", next.Token(), term.Token())
	}
}
