package agent

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/clock"
	"github.com/tenure-go/tenure/timing"
)

// Why a campaign is over.
var (
	errMissed = errors.New("no heartbeat arrived within the interval")
	errStream = errors.New("the stream of events has ended")
	errLeft   = errors.New("the client has left")
	errEnded  = errors.New("the election has ended")
)

// campaign is one candidate, for one client.
type campaign struct {
	agent    *Agent
	name     string // random: only the client knows it
	election *tenure.Election
	interval time.Duration // of heartbeats
	unfit    bool          // by the client's own word; under the agent's lock
	// lease and finishWithin are those of the election's Config.
	lease, finishWithin time.Duration

	ctx    context.Context // of the election's Run
	cancel context.CancelFunc
	events chan event    // to the client's stream
	over   chan struct{} // closed when gone is set
	ended  chan struct{} // closed when Run has ended

	mu     sync.Mutex
	beat   clock.Instant // when the last heartbeat that counts arrived
	number uint64        // of that heartbeat
	stop   func() bool   // of the timer that looks for a missing one
	gone   error         // why the campaign is over, or nil
	told   *work         // the work of the term that the client was told of, until it has ended
}

// work is that of the client in one term.
type work struct {
	term  *tenure.Term
	asked bool          // to finish
	ended chan struct{} // closed when the client has reported the end
}

// begin takes the campaign up, and counts from now on until the first heartbeat.
func (c *campaign) begin() error {
	c.name = rand.Text()
	c.ctx, c.cancel = context.WithCancel(context.Background())
	c.events = make(chan event, room)
	c.over, c.ended = make(chan struct{}), make(chan struct{})
	c.mu.Lock() // until it counts: others ask for its state as soon as it is added
	defer c.mu.Unlock()
	if err := c.agent.add(c); err != nil {
		c.cancel()
		return err
	}
	c.rearm()
	go c.run()
	return nil
}

// run campaigns until the campaign is over. In a separate goroutine, a term can be left to expire.
func (c *campaign) run() {
	defer c.agent.running.Done()
	defer close(c.ended)
	defer func() {
		c.end(errEnded)
		c.agent.log.Info("the campaign is over", "election", c.election.Name(), "id", c.election.ID(), "cause", c.state().over)
	}()
	c.push(event{name: "candidate"})
	if err := c.election.Run(c.ctx, c.lead); err != nil {
		c.end(err)
	}
}

// rearm notes a heartbeat and sets the timer, under the lock.
func (c *campaign) rearm() {
	c.beat = c.agent.clock.Now().Instant
	if c.stop != nil {
		c.stop()
	}
	c.stop = c.agent.clock.AfterFunc(c.interval, c.look)
}

// look ends the campaign if its heartbeat is missing. A machine that slept wakes the timer late, so
// each request looks as well.
func (c *campaign) look() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lookLocked()
}

func (c *campaign) lookLocked() {
	if left := c.interval - c.agent.clock.Now().LeaderSince(c.beat); left <= 0 {
		c.endLocked(errMissed)
	}
}

// end makes the campaign over (A2).
func (c *campaign) end(why error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.endLocked(why)
}

func (c *campaign) endLocked(why error) {
	if c.gone != nil {
		return
	}
	c.gone = why
	if errors.Is(why, errMissed) {
		c.agent.missed.Add(1)
	}
	c.stop()
	close(c.over)
	if c.told == nil { // otherwise lead ends Run without a release
		c.cancel()
	}
	c.agent.remove(c)
}

// grant returns the work of a term that the client will be told of, or nil if it never is.
func (c *campaign) grant(t *tenure.Term) *work {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lookLocked()
	if c.gone != nil || t.Err() != nil {
		return nil
	}
	c.told = &work{term: t, ended: make(chan struct{})}
	c.agent.noteChange()
	return c.told
}

// lead is the work of a leader: it returns when the client has reported the end of its own (A3,
// A5). If the campaign is over before that, it never returns: the client may still act, so
// the lease must run out.
func (c *campaign) lead(ctx context.Context, t *tenure.Term) error {
	w := c.grant(t)
	if w == nil {
		return nil
	}
	c.push(event{name: "elected", of: w})
	asked, lost, renewed := ctx.Done(), t.LeaseContext().Done(), timing.Renewed(t)
	for {
		select {
		case <-w.ended:
			if t.Err() == nil && ctx.Err() == nil { // it gave up by itself
				return tenure.ErrDecline
			}
			return nil
		case <-c.over:
			if w.hasEnded() {
				return nil
			}
			// when the lease has run out, the release does no harm, and the election ends
			c.agent.clock.AfterFunc(c.lease, func() { _ = t.Resign(context.Background()) })
			runtime.Goexit() // the election abandons the term: it renews and releases nothing
		case <-asked:
			asked = nil
			if t.Err() == nil {
				c.ask(w)
				c.push(event{name: "finish", of: w, reason: context.Cause(ctx).Error()})
			}
		case <-lost:
			lost, renewed = nil, nil
			c.agent.noteChange()
			c.push(event{name: "lost", of: w, reason: t.Err().Error()})
		case <-renewed:
			if renewed = timing.Renewed(t); t.Err() == nil {
				c.push(event{name: "renewed", of: w})
			} else {
				renewed = nil
			}
		}
	}
}

func (w *work) hasEnded() bool {
	select {
	case <-w.ended:
		return true
	default:
		return false
	}
}

func (c *campaign) ask(w *work) {
	c.mu.Lock()
	defer c.mu.Unlock()
	w.asked = true
	c.agent.noteChange()
}

// room is how many events may wait for a client that reads slowly. Renewals are left out first.
const room = 16

// push queues an event for the client's stream. A client that does not read ends its campaign: it
// must learn of each grant.
func (c *campaign) push(e event) {
	if e.name == "renewed" && len(c.events) > room/2 {
		return
	}
	select {
	case c.events <- e:
	default:
		c.end(errStream)
	}
}

// state is the grant of the agent to a client at one moment.
type state struct {
	number    uint64
	over      error
	token     uint64 // of the open term; 0: it does not lead
	remaining time.Duration
	finish    bool // it was asked to finish
}

func (s state) mayAct(needs time.Duration) bool {
	return s.over == nil && s.remaining > 0 && s.remaining >= needs
}

func (c *campaign) state() state {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lookLocked()
	return c.stateLocked()
}

func (c *campaign) stateLocked() state {
	s := state{number: c.number, over: c.gone}
	if w := c.told; w != nil && c.gone == nil {
		s.token, s.remaining, s.finish = w.term.Token(), w.term.Remaining(), w.asked || w.term.Err() != nil
	}
	return s
}

var errNumber = errors.New("the number of the heartbeat is not higher than the last one")

// heartbeat takes a heartbeat (A1).
func (c *campaign) heartbeat(number uint64) (state, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lookLocked()
	if c.gone == nil {
		if number <= c.number {
			return c.stateLocked(), fmt.Errorf("%w: %d after %d", errNumber, number, c.number)
		}
		c.number = number
		c.rearm()
	}
	return c.stateLocked(), nil
}

var errToken = errors.New("the client has no open term with this token")

// finished takes the report that the client's work of a term has ended. A report that comes when
// the campaign is over changes nothing: the lease runs out (A3).
func (c *campaign) finished(token uint64) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lookLocked()
	switch {
	case c.gone != nil:
		return nil
	case c.told == nil || c.told.term.Token() != token:
		return errToken
	}
	c.finishLocked()
	return nil
}

func (c *campaign) finishLocked() {
	if c.told != nil {
		close(c.told.ended)
		c.told = nil
		c.agent.noteChange()
	}
}

// leave ends the campaign of a client after the end of its work.
func (c *campaign) leave() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lookLocked()
	if c.gone == nil { // after a miss, the lease runs out
		c.finishLocked()
	}
	c.endLocked(errLeft)
}
