package s3lect

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/clock"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/faults"
)

// newOne is a Tenure candidate in legacy mode.
type newOne struct {
	id       string
	line     faults.Store
	handOver func(context.Context, string) error
	cancel   context.CancelFunc
	done     chan struct{}

	mu   sync.Mutex
	term *tenure.Term
	won  time.Time
	dead bool
}

// clockAhead shows its own time of day. Its time passes at the normal rate.
type clockAhead struct {
	clock.Clock
	by time.Duration
}

func (c clockAhead) Now() clock.Reading {
	r := c.Clock.Now()
	r.Wall = r.Wall.Add(c.by)
	return r
}

// startNew starts a candidate whose records pass through meddle on their way to the store, unless
// meddle is nil. It is an elector of this package if the conditions need nothing that an elector
// lacks.
func startNew(id string, line faults.Store, skew time.Duration, cond conditions) (*newOne, error) {
	ctx, cancel := context.WithCancel(context.Background())
	n := &newOne{id: id, line: line, cancel: cancel, done: make(chan struct{})}
	if cond.electors {
		return n, n.elector(ctx, skew, cond.lease)
	}
	var inner driver.Store = line
	if cond.meddle != nil {
		inner = cond.meddle(line)
	}
	store := legacyAt(inner, LegacyConfig{}.withDefaults(), func() time.Time { return time.Now().Add(skew) })
	e, err := tenure.New(store, "lock.json", tenure.Config{
		ID: id, Address: id + ":9443", Lease: cond.lease, Clock: clockAhead{clock.Standard{}, skew},
	})
	if err != nil {
		return nil, err
	}
	n.handOver = e.HandOver
	go func() {
		defer close(n.done)
		_ = e.Run(ctx, func(ctx context.Context, t *tenure.Term) error {
			_ = n.work(ctx)
			<-ctx.Done()
			return nil
		})
	}()
	return n, nil
}

// elector uses S3lect's API. Its LeaderTimeout is its lease, and counts as the timeout of the old
// processes.
func (n *newOne) elector(ctx context.Context, skew, lease time.Duration) error {
	e, err := NewS3Elector(S3ElectorOptions{
		Config: &ElectorConfig{
			LockfilePath: "lock.json", ServerID: n.id, ServerAddr: n.id + ":9443",
			LeaderTimeout: lease, FrequentInterval: lease / 3, OnAcquireLeadership: n.work,
		},
		Store: n.line, Logger: slog.New(slog.DiscardHandler), MaxSkew: LegacyConfig{}.withDefaults().MaxSkew,
		Configure: func(c *tenure.Config) { c.Clock = clockAhead{clock.Standard{}, skew} },
	})
	if err != nil {
		return err
	}
	n.handOver = e.election.HandOver
	go func() {
		defer close(n.done)
		_ = e.Start(ctx)
		<-e.done
	}()
	return nil
}

func (n *newOne) work(ctx context.Context) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.term, _ = tenure.FromContext(ctx)
	n.won = time.Now()
	return nil
}

func (n *newOne) acts() (since, awake time.Time, ok bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.won, time.Time{}, n.term != nil && !n.dead && n.term.Err() == nil
}

func (n *newOne) token() uint64 {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.term == nil {
		return 0
	}
	return n.term.Token()
}

func (n *newOne) name() string { return "new " + n.id }

func (n *newOne) trouble(kind int, d time.Duration) (undo func()) {
	if kind%3 == 2 {
		ctx, cancel := context.WithTimeout(context.Background(), d)
		_ = n.handOver(ctx, "")
		return cancel
	}
	n.line.Partition()
	return n.line.Heal
}

func (n *newOne) end(crash bool) {
	if crash {
		n.mu.Lock()
		n.dead = true
		n.mu.Unlock()
		n.line.Partition()
	}
	n.cancel()
	<-n.done
}
