package s3lect

import (
	"context"
	"net"
	"strings"
	"sync/atomic"
	"time"

	"github.com/tenure-go/tenure/driver"
)

// hostReader is the store below the peers of one election. It remembers the leader's host from the
// lockfile that was read last: the host that the peers dial.
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

// leader returns the leader's host, empty if there is none.
func (h *hostReader) leader() string {
	if host := h.host.Load(); host != nil {
		return *host
	}
	return ""
}

// MinLease returns the MinLease of the store, or 1 ms if it has none.
func (h *hostReader) MinLease() time.Duration { return minLeaseOf(h.Store) }

// CheckKey calls the CheckKey of the store, if it has one.
func (h *hostReader) CheckKey(key string) error { return checkKeyOf(h.Store, key) }

// CheckRights calls the CheckRights of the store, if it has one.
func (h *hostReader) CheckRights(ctx context.Context, key string) error {
	return checkRightsOf(ctx, h.Store, key)
}

// Inspect calls the Inspect of the store, if it has one.
func (h *hostReader) Inspect(ctx context.Context, lease time.Duration) ([]driver.Finding, error) {
	return inspect(ctx, h.Store, lease)
}
