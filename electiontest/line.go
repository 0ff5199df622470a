package electiontest

import (
	"context"
	"sync"
	"time"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/faults"
)

// line is one candidate's way to the store, without watch. It can go silent, by Partition, and harm
// the answers to writes.
type line struct {
	faults.Store

	mu sync.Mutex
	traffic
}

// traffic is what has passed through a line.
type traffic struct {
	reads, writes int
	first         []byte    // the value of the first write
	sent          time.Time // when the last acknowledged write was sent
}

// newLine returns a line to a store, with faults for its first writes.
func newLine(store driver.Store, harm ...faults.Fault) *line {
	l := &line{Store: faults.New(store, 1, faults.Plan{})}
	l.Next(faults.Write, harm...)
	return l
}

// Abilities are the limits of the store. All others are hidden, so that the candidate has to read.
func (l *line) Abilities() driver.Abilities {
	a := l.Store.Abilities()
	return driver.Abilities{Bounded: a.Bounded}
}

// passed returns the traffic until now.
func (l *line) passed() traffic {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.traffic
}

// Read is the store's.
func (l *line) Read(ctx context.Context, key string) (driver.Entry, error) {
	e, err := l.Store.Read(ctx, key)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.reads++
	return e, err
}

// CompareAndSwap is the store's.
func (l *line) CompareAndSwap(ctx context.Context, key string, prev driver.Version, value []byte) (driver.Version, error) {
	sent := time.Now()
	v, err := l.Store.CompareAndSwap(ctx, key, prev, value)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.writes++; l.writes == 1 {
		l.first = value
	}
	if err == nil {
		l.sent = sent
	}
	return v, err
}
