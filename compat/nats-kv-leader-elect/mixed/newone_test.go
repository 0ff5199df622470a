package mixed

import (
	"context"
	"sync"
	"time"

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
