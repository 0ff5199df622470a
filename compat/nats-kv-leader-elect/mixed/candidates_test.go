package mixed

import (
	"context"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/clock"
	"github.com/tenure-go/tenure/driver/faults"
	"github.com/tenure-go/tenure/driver/natskv"
)

// newOne is a Tenure candidate.
type newOne struct {
	id       string
	won      func() // called when it begins to lead
	store    *natskv.Store
	line     faults.Store
	election *tenure.Election
	cancel   context.CancelFunc
	done     chan struct{}

	mu   sync.Mutex
	term *tenure.Term
	dead bool
}

func (n *newOne) start(lease time.Duration) error {
	var err error
	n.election, err = tenure.New(n.line, "billing", tenure.Config{ID: n.id, Lease: lease, Clock: clock.Standard{}})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	n.cancel, n.done = cancel, make(chan struct{})
	go func() {
		defer close(n.done)
		_ = n.election.Run(ctx, n.work)
	}()
	return nil
}

func (n *newOne) work(ctx context.Context, t *tenure.Term) error {
	n.mu.Lock()
	n.term = t
	n.mu.Unlock()
	n.won()
	<-ctx.Done()
	return nil
}

func (n *newOne) leads() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.term != nil && !n.dead && n.term.Err() == nil
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

// trouble cuts it off for a while, or asks it to hand over.
func (n *newOne) trouble(asked bool) (undo func()) {
	if asked {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		_ = n.election.HandOver(ctx, "")
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
	n.line.Wait()
	_ = n.store.Close()
}

// oldOne is a candidate of nats-kv-leader-elect, as its documentation describes it. It campaigns
// every three quarters of the TTL, or more often with a back-off: it Creates the key, which
// succeeds if the key is absent or deleted. Then it leads, and every three quarters of the TTL it
// Updates the key with the last sequence. When an Update fails, it stops leading. It never reads,
// and releases nothing when it ends.
//
// It counts as leading from when the server applied its Create until it receives the answer to a
// failed Update.
type oldOne struct {
	id    string
	kv    jetstream.KeyValue
	renew time.Duration // between two Updates
	every time.Duration // between two Creates
	lag   func() time.Duration
	won   func() // called when it begins to lead

	mu      sync.Mutex
	leading bool
	last    uint64

	die  chan struct{}
	done chan struct{}
}

// oldPatience is the time limit of the client library.
const oldPatience = 5 * time.Second

// start campaigns for the first time after this delay.
func (o *oldOne) start(first time.Duration) {
	o.die, o.done = make(chan struct{}), make(chan struct{})
	go func() {
		defer close(o.done)
		for wait := first; o.sleep(wait); {
			begun := time.Now()
			wait = o.campaign() - time.Since(begun)
		}
	}()
}

// sleep returns false as soon as the process has died.
func (o *oldOne) sleep(d time.Duration) bool {
	select {
	case <-o.die:
		return false
	case <-time.After(d):
		return true
	}
}

// campaign returns the time from its beginning to the next campaign.
func (o *oldOne) campaign() time.Duration {
	if !o.sleep(o.lag()) {
		return 0
	}
	ctx, cancel := context.WithTimeout(context.Background(), oldPatience)
	defer cancel()
	var err error
	if o.leads() {
		o.last, err = o.kv.Update(ctx, "billing", []byte(o.id), o.last)
	} else {
		o.last, err = o.kv.Create(ctx, "billing", []byte(o.id))
	}
	if err == nil {
		o.lead(true)
		return o.renew
	}
	o.sleep(o.lag())
	o.lead(false)
	return o.every
}

func (o *oldOne) lead(yes bool) {
	o.mu.Lock()
	select {
	case <-o.die:
		yes = false
	default:
	}
	begins := yes && !o.leading
	o.leading = yes
	o.mu.Unlock()
	if begins {
		o.won()
	}
}

func (o *oldOne) leads() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.leading
}

func (o *oldOne) name() string { return "old " + o.id }

// end does the same for a crash, because old candidates release nothing.
func (o *oldOne) end(bool) {
	close(o.die)
	o.lead(false)
	<-o.done
}
