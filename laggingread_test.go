package tenure_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/memory"
)

// lagging is a store whose watches begin late. For 10 ms after a write, its reads show the state
// before it, as the reads of a replica do.
type lagging struct {
	*memory.Store
	begins time.Duration

	mu      sync.Mutex
	former  driver.Entry
	written time.Time
}

func (l *lagging) Watch(ctx context.Context, key string, see func(driver.Entry)) (stop func(), err error) {
	time.Sleep(l.begins)
	return l.Store.Watch(ctx, key, see)
}

func (l *lagging) Read(ctx context.Context, key string) (driver.Entry, error) {
	time.Sleep(time.Millisecond)
	l.mu.Lock()
	defer l.mu.Unlock()
	if time.Since(l.written) < 10*time.Millisecond {
		return l.former, nil
	}
	return l.Store.Read(ctx, key)
}

func (l *lagging) CompareAndSwap(ctx context.Context, key string, prev driver.Version, value []byte) (driver.Version, error) {
	time.Sleep(time.Millisecond)
	l.mu.Lock()
	defer l.mu.Unlock()
	former, err := l.Store.Read(ctx, key)
	if err != nil {
		return "", err
	}
	l.former, l.written = former, time.Now()
	return l.Store.CompareAndSwap(ctx, key, prev, value)
}

// The leader must not take a stale read for the loss of its term.
func TestWatchThatBeginsDuringATermDoesNotEndIt(t *testing.T) {
	for begins := range 10 {
		synctest.Test(t, func(t *testing.T) {
			store := memory.New()
			former, _ := elect(t, store, "a", nil)
			_ = former.end(t)
			slow := &lagging{Store: store, begins: time.Duration(begins) * time.Millisecond}
			_, term := elect(t, slow, "b", nil)
			time.Sleep(3 * lease)
			if err := term.Err(); err != nil {
				t.Errorf("the watch begins after %d ms: %v", begins, err)
			}
		})
	}
}
