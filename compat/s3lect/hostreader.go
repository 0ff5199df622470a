package s3lect

import (
	"context"
	"net"
	"strings"
	"sync/atomic"
	"time"

	"github.com/tenure-go/tenure/driver"
)

// hostReader stands below the peers of one election and remembers the host of the leader in the
// lockfile that was read last, which they dial.
type hostReader struct {
	driver.Store
	host atomic.Pointer[string]
}

var (
	_ driver.Bounded   = (*hostReader)(nil)
	_ driver.Inspector = (*hostReader)(nil)
)

func (h *hostReader) Read(ctx context.Context, key string) (driver.Entry, error) {
	e, err := h.Store.Read(ctx, key)
	if err == nil {
		host := ""
		if d, ok := parse(e.Value); ok {
			host = hostOf(d.fields.LeaderAddr)
		}
		h.host.Store(&host)
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
func (h *hostReader) leader() string {
	if host := h.host.Load(); host != nil {
		return *host
	}
	return ""
}

// MinLease is that of the store, or 1 ms if it names none.
func (h *hostReader) MinLease() time.Duration { return minLeaseOf(h.Store) }

// CheckKey is that of the store.
func (h *hostReader) CheckKey(key string) error { return checkKeyOf(h.Store, key) }

// CheckRights is that of the store.
func (h *hostReader) CheckRights(ctx context.Context, key string) error {
	return checkRightsOf(ctx, h.Store, key)
}

// Inspect is that of the store.
func (h *hostReader) Inspect(ctx context.Context, lease time.Duration) ([]driver.Finding, error) {
	return inspect(ctx, h.Store, lease)
}
