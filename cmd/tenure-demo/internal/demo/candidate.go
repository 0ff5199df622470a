package demo

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/cmd/internal/stamp"
	"github.com/tenure-go/tenure/cmd/internal/stores"
	"github.com/tenure-go/tenure/driver"
)

// RunCandidate takes part in the election that the first line of in describes, and reports to out.
// It ends when ctx ends. It also ends when in ends: then the demo has died, and the candidate must
// not stay behind.
func RunCandidate(ctx context.Context, in io.Reader, out io.Writer) error {
	lines := bufio.NewReader(in)
	line, err := lines.ReadBytes('\n')
	if err != nil {
		return errors.New("this command is for the demo itself: run tenure-demo")
	}
	var s spec
	if err := json.Unmarshal(line, &s); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		_, _ = io.Copy(io.Discard, lines)
		cancel()
	}()
	c := candidate{spec: s, reports: newReporter(out)}
	return c.run(ctx)
}

// candidate is one member of the election.
type candidate struct {
	spec       spec
	reports    *reporter
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
	cfg.Nominator, cfg.NomineeOnly, cfg.Metadata = n.Nominator, n.NomineeOnly, n.Metadata
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
	m, err := c.spec.Peer.Open(ctx, reporting, c.tellPeer)
	if err != nil {
		return nil, nil, err
	}
	cfg.Address = m.Address
	return m.Store, func() { _ = m.Close() }, nil
}

// tellPeer reports that the reports of a leader do not arrive. It is called with nil when they do
// again.
func (c *candidate) tellPeer(_ string, err error) {
	if err != nil {
		c.reports.send(report{At: stamp.Now(), Peer: err.Error()})
	}
}

// refuse reports the reason why this candidate cannot take part.
func (c *candidate) refuse(err error) {
	c.reports.send(report{At: stamp.Now(), Fault: err.Error(), Denied: errors.Is(err, driver.ErrDenied)})
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
	c.reports.send(report{At: at, Event: text})
}
