package dapr

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/dapr/components-contrib/lock"
	conformance "github.com/dapr/components-contrib/tests/conformance/lock"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/memory"
)

// locks has a lock for each election of a store.
type locks struct {
	store driver.Store
	mu    sync.Mutex
	held  map[string]held // by this process
}

type held struct {
	owner string
	*tenure.Term
}

func (l *locks) InitLockStore(context.Context, lock.Metadata) error { return nil }

func (l *locks) Close() error { return nil }

// TryLock succeeds if this process is elected within a second.
func (l *locks) TryLock(ctx context.Context, q *lock.TryLockRequest) (*lock.TryLockResponse, error) {
	e, err := tenure.New(l.store, q.ResourceID, tenure.Config{})
	if err != nil {
		return nil, err
	}
	short, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	term, err := e.Campaign(short)
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return &lock.TryLockResponse{}, nil // another term is open
	}
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	l.held[q.ResourceID] = held{q.LockOwner, term}
	l.mu.Unlock()
	time.AfterFunc(time.Duration(q.ExpiryInSeconds)*time.Second, func() { _ = term.Resign(context.Background()) })
	return &lock.TryLockResponse{Success: true}, nil
}

// Unlock releases a lock of this process.
func (l *locks) Unlock(ctx context.Context, q *lock.UnlockRequest) (*lock.UnlockResponse, error) {
	l.mu.Lock()
	h := l.held[q.ResourceID]
	l.mu.Unlock()
	switch {
	case h.Term.Err() != nil: // of no term, too
		return &lock.UnlockResponse{Status: lock.LockDoesNotExist}, nil
	case h.owner != q.LockOwner:
		return &lock.UnlockResponse{Status: lock.LockBelongsToOthers}, nil
	}
	return &lock.UnlockResponse{Status: lock.Success}, h.Resign(ctx)
}

func TestConformance(t *testing.T) {
	cfg, err := conformance.NewTestConfig("tenure", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	conformance.ConformanceTests(t, nil, &locks{store: memory.New(), held: map[string]held{}}, cfg)
}
