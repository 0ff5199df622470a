package electiontest

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/tenure-go/tenure/driver"
)

// line is one candidate's way to the store, without watch. It can go silent, and harm the answers
// to writes.
type line struct {
	driver.Store

	mu     sync.Mutex
	silent bool
	harm   harm
	asked  int       // reads
	tried  int       // writes
	sent   time.Time // of the last acknowledged write
	value  []byte    // of the last write that was harmed
}

// Abilities are the limits of the store. All others are hidden: their calls and pushes would pass
// by the silence.
func (l *line) Abilities() driver.Abilities {
	a := driver.AbilitiesOf(l.Store)
	return driver.Abilities{Bounded: a.Bounded, LeaseLimiter: a.LeaseLimiter}
}

// harm does a write to the store in a way in which networks do.
type harm func(write func() (driver.Version, error)) (driver.Version, error)

// loseAnswer carries a write out and loses its answer.
func loseAnswer(write func() (driver.Version, error)) (driver.Version, error) {
	_, err := write()
	return "", errors.Join(errors.New("the answer is lost"), err)
}

// deliverTwice carries a write out twice, and returns the second answer.
func deliverTwice(write func() (driver.Version, error)) (driver.Version, error) {
	_, _ = write()
	return write()
}

// silence makes all later calls hang until their context ends, or lets them pass again.
func (l *line) silence(on bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.silent = on
}

// lastSent is when the last acknowledged write was sent.
func (l *line) lastSent() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.sent
}

// reads is how often the candidate has read.
func (l *line) reads() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.asked
}

// written is how often the candidate has tried to write.
func (l *line) written() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.tried
}

// harmed is the value of the write that was harmed.
func (l *line) harmed() []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.value
}

// reach returns once the network has delayed or lost the request.
func (l *line) reach(ctx context.Context) error {
	l.mu.Lock()
	silent := l.silent
	l.mu.Unlock()
	if silent {
		<-ctx.Done()
		return ctx.Err()
	}
	return nil
}

// Read is the store's.
func (l *line) Read(ctx context.Context, key string) (driver.Entry, error) {
	if err := l.reach(ctx); err != nil {
		return driver.Entry{}, err
	}
	e, err := l.Store.Read(ctx, key)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.asked++
	return e, err
}

// CompareAndSwap is the store's. Harm is done once.
func (l *line) CompareAndSwap(ctx context.Context, key string, prev driver.Version, value []byte) (driver.Version, error) {
	if err := l.reach(ctx); err != nil {
		return "", err
	}
	sent := time.Now()
	write := func() (driver.Version, error) { return l.Store.CompareAndSwap(ctx, key, prev, value) }
	if harm := l.takeHarm(value); harm != nil {
		return harm(write)
	}
	v, err := write()
	if err == nil {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.sent = sent
	}
	return v, err
}

func (l *line) takeHarm(value []byte) harm {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tried++
	h := l.harm
	if h != nil {
		l.harm, l.value = nil, value
	}
	return h
}
