package s3lect

import (
	"context"
	"encoding/json"
	"errors"
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

// oldOne is an S3lect process, as its documentation and its known faults describe it. It reads the
// lockfile every 5 s. If the lockfile names it and the time there is less than 15 s old by its own
// clock, it leads and renews. If the lockfile names another process, it follows. Otherwise, or
// without a lockfile, it writes its own name under the ETag that it read. It resigns by writing the
// zero time. A failed read changes nothing. So it may go on leading while it cannot reach the
// store.
type oldOne struct {
	id   string
	line faults.Store
	skew time.Duration

	mu      sync.Mutex
	leading bool
	since   time.Time // when it began to lead, in true time
	frozen  time.Time // it is stopped until then
	refused time.Time // its writes fail until then
	decline bool      // its acquire hook fails next time

	die, resign chan struct{}
	done        chan struct{}
}

const (
	oldEvery   = 5 * time.Second
	oldTimeout = 15 * time.Second
)

var errRefused = errors.New("slow down")

func startOld(id string, line faults.Store, skew, first time.Duration) *oldOne {
	o := &oldOne{
		id: id, line: line, skew: skew,
		die: make(chan struct{}), resign: make(chan struct{}), done: make(chan struct{}),
	}
	go func() {
		defer close(o.done)
		time.Sleep(first)
		o.loop()
	}()
	return o
}

func (o *oldOne) loop() {
	tick := time.NewTicker(oldEvery)
	defer tick.Stop()
	for {
		o.cycle()
		select {
		case <-o.die:
			o.lead(false)
			return
		case <-o.resign:
			if o.leads() {
				o.lead(false)
				o.write(time.Time{}, o.named())
			}
			return
		case <-tick.C:
			o.thaw(tick)
		}
	}
}

// thaw waits until the process is not frozen, and then for its next cycle.
func (o *oldOne) thaw(tick *time.Ticker) {
	for {
		o.mu.Lock()
		d := time.Until(o.frozen)
		o.mu.Unlock()
		if d <= 0 {
			return
		}
		time.Sleep(d)
		tick.Reset(oldEvery)
		<-tick.C
	}
}

func (o *oldOne) cycle() {
	data, etag, err := o.get()
	if errors.Is(err, ErrStorageNotFound) {
		o.claim("")
		return
	}
	var l lockfile
	if err != nil || json.Unmarshal(data, &l) != nil {
		return
	}
	fresh := time.Now().Add(o.skew).Sub(l.LastUpdated) < oldTimeout
	switch {
	case fresh && l.LeaderID == o.id:
		if o.write(time.Now().Add(o.skew), etag) == nil {
			o.lead(true)
		}
	case fresh:
		o.lead(false)
	default:
		o.claim(etag)
	}
}

func (o *oldOne) claim(etag string) {
	o.mu.Lock()
	decline := o.decline
	o.mu.Unlock()
	if o.write(time.Now().Add(o.skew), etag) != nil {
		o.lead(false)
		return
	}
	if decline && !o.leads() {
		o.write(time.Time{}, o.named())
		return
	}
	o.lead(false) // this is a new beginning, even if it still believed that it led
	o.lead(true)
}

// named returns the ETag of the lockfile if it names this process.
func (o *oldOne) named() string {
	data, etag, err := o.get()
	var l lockfile
	if err != nil || json.Unmarshal(data, &l) != nil || l.LeaderID != o.id {
		return "none"
	}
	return etag
}

const oldPatience = 2 * time.Second

func (o *oldOne) get() ([]byte, string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), oldPatience)
	defer cancel()
	return ToStorage(o.line).Get(ctx, "lock.json")
}

func (o *oldOne) write(at time.Time, etag string) error {
	o.mu.Lock()
	refused := time.Now().Before(o.refused)
	o.mu.Unlock()
	if refused {
		return errRefused
	}
	data, err := json.Marshal(lockfile{LeaderID: o.id, LeaderAddr: o.id + ":8443", LastUpdated: at})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), oldPatience)
	defer cancel()
	return ToStorage(o.line).PutIfMatch(ctx, "lock.json", data, etag)
}

func (o *oldOne) lead(yes bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if yes && !o.leading {
		o.since = time.Now()
	}
	o.leading = yes
}

func (o *oldOne) leads() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.leading
}

// acts reports whether the process leads and is able to act, and since when.
func (o *oldOne) acts() (since, awake time.Time, ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.since, o.frozen, o.leading && !time.Now().Before(o.frozen)
}

func (o *oldOne) name() string { return "old " + o.id }

// trouble causes one kind of trouble for a process for a while, and returns a function that ends
// it.
func (o *oldOne) trouble(kind int, d time.Duration) (undo func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch kind % 3 {
	case 0:
		if until := time.Now().Add(d); until.After(o.frozen) {
			o.frozen = until
		}
	case 1:
		o.refused = time.Now().Add(d)
	case 2:
		o.decline = true
	}
	return func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.decline = false
	}
}

func (o *oldOne) end(crash bool) {
	if crash {
		o.lead(false) // an interrupted action is not an act
		close(o.die)
	} else {
		close(o.resign)
	}
	<-o.done
}
