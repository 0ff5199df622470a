package tenure

import (
	"context"
	"time"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/internal/protocol"
)

// readModifyWrite replaces the value in the store by the result of change, with one
// compare-and-swap, and replaces nothing if change returns an error. It returns protocol.ErrTimeout
// if more time than one attempt has passed since it began to read: this process may have been
// stopped in between, and versions recur where a store begins its history again (L3a).
func (m *runner) readModifyWrite(ctx context.Context, change func(driver.Entry) ([]byte, error)) error {
	asOf := m.clock.Now()
	entry, err := m.store.Read(ctx, m.key)
	if err != nil {
		return err
	}
	value, err := change(entry)
	if err != nil {
		return err
	}
	left := m.attemptTimeout() - m.clock.Now().LeaderSince(asOf.Instant)
	if left <= 0 {
		return protocol.ErrTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, left)
	defer cancel()
	_, err = m.store.CompareAndSwap(ctx, m.key, entry.Version, value)
	return err
}

// attemptTimeout is the time that one operation is given.
func (m *runner) attemptTimeout() time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.settings.machine.Attempt()
}
