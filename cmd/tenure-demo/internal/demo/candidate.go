package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/cmd/internal/peers"
	"github.com/tenure-go/tenure/cmd/internal/stamp"
	"github.com/tenure-go/tenure/cmd/internal/stores"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/internal/crew"
)

// spec is the first line of a candidate's standard input. It holds credentials, so it is not an
// argument of the command line, which all users of the machine can read.
type spec struct {
	Place    stores.Place  `json:"place"`
	Election string        `json:"election"`
	ID       string        `json:"id"`
	Lease    time.Duration `json:"lease"`
	Renew    time.Duration `json:"renew"`
	Splay    time.Duration `json:"splay"`
	// Peer is nil if followers do not use peers.
	Peer *peers.Settings `json:"peer,omitempty"`
}

func (s spec) config() tenure.Config {
	return tenure.Config{ID: s.ID, Lease: s.Lease, Tuning: tenure.Tuning{Renew: s.Renew, Splay: s.Splay}}
}

// report is one line from a candidate to the demo: an act, an event, or why it cannot take part.
type report struct {
	At stamp.Time `json:"at"`
	// Act is the token of the term under which the candidate acted at that moment.
	Act uint64 `json:"act,omitempty"`
	// Event is an event of the library, as the library encodes it.
	Event json.RawMessage `json:"event,omitempty"`
	// Wrote is the record that the candidate has written, if the store does not push it to the
	// demo.
	Wrote json.RawMessage `json:"wrote,omitempty"`
	// Peer is the reason why reports of the leader do not arrive.
	Peer string `json:"peer,omitempty"`
	// Fault is the reason why the candidate cannot take part.
	Fault string `json:"fault,omitempty"`
	// Denied reports that the fault is a missing right.
	Denied bool `json:"denied,omitempty"`
}

// event is the part of a library's event that the demo reads.
type event struct {
	Time   time.Time        `json:"time"`
	Kind   tenure.EventKind `json:"event"`
	ID     string           `json:"id"`
	Term   uint64           `json:"term"`
	Leader string           `json:"leader"`
	Cause  string           `json:"cause"`
	Reason tenure.Reason    `json:"reason"`
	Missed int              `json:"missed"`

	raw json.RawMessage
}

func (r report) event() (*event, error) {
	e := event{raw: r.Event}
	if err := json.Unmarshal(r.Event, &e); err != nil {
		return nil, err
	}
	return &e, nil
}

// RunCandidate takes part in the election that the first line of in describes, and reports to out.
// It ends when ctx ends. It also ends when in ends: then the demo has died, and the candidate must
// not stay behind.
func RunCandidate(ctx context.Context, in io.Reader, out io.Writer) error {
	c := candidate{reports: crew.NewReporter(out)}
	rest, err := crew.Settings(in, &c.spec)
	switch {
	case errors.Is(err, io.EOF):
		return errors.New("this command is for the demo itself: run tenure-demo")
	case err != nil:
		return err
	}
	ctx, cancel := crew.Until(ctx, rest)
	defer cancel()
	return c.run(ctx)
}

// candidate is one member of the election.
type candidate struct {
	spec       spec
	reports    *crew.Reporter
	nomination *stores.Nomination // nil where no candidate has precedence
}

func (c *candidate) run(ctx context.Context) error {
	store, err := c.open(ctx)
	switch {
	case ctx.Err() != nil && err != nil:
		return nil
	case err != nil:
		c.refuse(err)
		return err
	}
	defer func() { _ = store.Close() }()
	cfg := c.spec.config()
	cfg.OnEvent = c.hear
	leaveGroup, err := c.nominate(ctx, store, &cfg)
	if err != nil {
		c.refuse(err)
		return err
	}
	defer leaveGroup()
	on, leave, err := c.join(ctx, store.Driver, &cfg)
	if err == nil {
		err = c.take(ctx, on, cfg)
		leave()
	}
	if err != nil && ctx.Err() == nil {
		c.refuse(err)
	}
	return err
}

func (c *candidate) take(ctx context.Context, store driver.Store, cfg tenure.Config) error {
	e, err := tenure.New(store, c.spec.Election, cfg)
	if err != nil {
		return err
	}
	return e.Run(ctx, c.lead)
}

// nominate joins the consumer group that nominates the leader, if the place has one. Call leave
// after the election.
func (c *candidate) nominate(ctx context.Context, store *stores.Store, cfg *tenure.Config) (leave func(), err error) {
	n, err := store.Nominate(ctx, c.spec.Election)
	if n == nil {
		return func() {}, err
	}
	c.nomination = n
	cfg.Nomination, cfg.Metadata = n.Config, n.Metadata
	return func() { _ = n.Close() }, nil
}

// join returns the store for the election. If the store does not push, the candidate reports its
// writes to the demo, and has peers if they are set. Call leave after the election.
func (c *candidate) join(ctx context.Context, store driver.Store, cfg *tenure.Config) (on driver.Store, leave func(), err error) {
	if driver.AbilitiesOf(store).Watcher != nil {
		return store, func() {}, nil
	}
	reporting := &reportingStore{store, c.reports}
	if c.spec.Peer == nil {
		return reporting, func() {}, nil
	}
	m, err := c.spec.Peer.Open(ctx, reporting, func(_ string, err error) {
		if err != nil { // nil when the reports of the leader arrive again
			c.reports.Send(report{At: stamp.Now(), Peer: err.Error()})
		}
	})
	if err != nil {
		return nil, nil, err
	}
	cfg.Address = m.Address
	return m.Store, func() { _ = m.Close() }, nil
}

// refuse reports the reason why this candidate cannot take part.
func (c *candidate) refuse(err error) {
	c.reports.Send(report{At: stamp.Now(), Fault: err.Error(), Denied: errors.Is(err, driver.ErrDenied)})
}

// open waits for the store, since a candidate may be started while the server is down.
func (c *candidate) open(ctx context.Context) (*stores.Store, error) {
	o := stores.Options{Client: "tenure-demo " + c.spec.ID, Lease: c.spec.Lease}
	return stores.Connect(ctx, c.spec.Place, c.spec.Election, o, stores.Patience{Limit: stores.Forever, Told: func(err error) {
		c.tell(tenure.Event{
			Time: time.Now(), Kind: tenure.EventTrouble, Election: c.spec.Election, ID: c.spec.ID, Cause: err,
		})
	}})
}

// hear reports an event. It also reports that only an operator can help: without the right to
// write, or on an unfit server, no candidate can ever be elected, and only a write shows that.
func (c *candidate) hear(e tenure.Event) {
	if e.Kind == tenure.EventTrouble && (errors.Is(e.Cause, driver.ErrDenied) || errors.Is(e.Cause, driver.ErrUnfit)) {
		c.refuse(e.Cause)
	}
	c.tell(e)
	if e.Kind == tenure.EventLeader && c.nomination != nil {
		c.compare(e)
	}
}

// compare raises an alarm if the leader has another Nominator than this candidate.
func (c *candidate) compare(e tenure.Event) {
	if err := c.nomination.Check(e.Leader.Metadata); err != nil {
		e.Kind, e.Leader, e.Cause = tenure.EventAlarm, tenure.Leader{}, err
		c.tell(e)
	}
}

// tell reports an event as the library encodes it. The stamp is the time at which the event
// happened, which may be a while ago on a busy machine. Both clocks are monotonic, since the
// library keeps the monotonic reading in the event's time.
func (c *candidate) tell(e tenure.Event) {
	at := stamp.Now().Add(-max(0, time.Since(e.Time)))
	text, err := json.Marshal(e)
	if err != nil {
		c.refuse(fmt.Errorf("event %s: %w", e.Kind, err))
		return
	}
	c.reports.Send(report{At: at, Event: text})
}

// reportingStore is a store that does not push. It reports the candidate's writes, so that the demo
// need not poll.
type reportingStore struct {
	driver.Store
	reports *crew.Reporter
}

// Abilities returns those of the store. Only writes pass through this one.
func (t *reportingStore) Abilities() driver.Abilities { return driver.AbilitiesOf(t.Store) }

// CompareAndSwap calls the store, and reports a successful write. The stamp is the time of the
// answer: other processes may have read the record a little earlier, but not before the write.
func (t *reportingStore) CompareAndSwap(ctx context.Context, key string, prev driver.Version, value []byte) (driver.Version, error) {
	version, err := t.Store.CompareAndSwap(ctx, key, prev, value)
	if err == nil {
		t.reports.Send(report{At: stamp.Now(), Wrote: value})
	}
	return version, err
}

// actEvery is the time from one act of a leader to the next.
const actEvery = 20 * time.Millisecond

// lead is the work: many small acts. Each is reported at once, so that none is lost when the leader
// is killed.
//
// The order in an act matters. It reads the clock first, and then checks the term: if the term is
// valid after the reading, it was valid at the reading too. If the leader is frozen between the
// two, the check fails when it wakes.
func (c *candidate) lead(ctx context.Context, term *tenure.Term) error {
	pace := time.NewTicker(actEvery)
	defer pace.Stop()
	for {
		at := stamp.Now()
		if term.Err() == nil {
			c.reports.Send(report{At: at, Act: term.Token()})
		}
		select {
		case <-ctx.Done():
			return nil
		case <-pace.C:
		}
	}
}
