package s3lect

import (
	"context"
	"net"
	"strings"
	"sync/atomic"
	"time"

	"github.com/tenure-go/tenure/driver"
)

// witness stands below the peers of one election and remembers the host of the leader in the lockfile that was read last,
// which is whom they dial.
type witness struct {
	driver.Store
	host atomic.Pointer[string]
}

var (
	_ driver.Bounded   = (*witness)(nil)
	_ driver.Inspector = (*witness)(nil)
)

func (w *witness) Read(ctx context.Context, key string) (driver.Entry, error) {
	e, err := w.Store.Read(ctx, key)
	if err == nil {
		host := ""
		if d, ok := parse(e.Value); ok {
			host = hostOf(d.fields.LeaderAddr)
		}
		w.host.Store(&host)
	}
	return e, err
}

func hostOf(address string) string {
	if host, _, err := net.SplitHostPort(address); err == nil {
		return host
	}
	return strings.Trim(address, "[]")
}

// leader is the host, empty while there is none.
func (w *witness) leader() string {
	if host := w.host.Load(); host != nil {
		return *host
	}
	return ""
}

// MinLease is that of the store, or 1 ms if it names none.
func (w *witness) MinLease() time.Duration { return minLeaseOf(w.Store) }

// CheckKey is that of the store.
func (w *witness) CheckKey(key string) error { return checkKeyOf(w.Store, key) }

// CheckRights is that of the store.
func (w *witness) CheckRights(ctx context.Context, key string) error {
	return checkRightsOf(ctx, w.Store, key)
}

// Inspect is that of the store.
func (w *witness) Inspect(ctx context.Context, lease time.Duration) ([]driver.Finding, error) {
	return inspect(ctx, w.Store, lease)
}
