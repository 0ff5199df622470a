package s3lect

import (
	"context"
	"net"
	"strings"
	"sync/atomic"

	"github.com/tenure-go/tenure/driver"
)

// hostReader is the store below the peers of one election. It remembers the leader's host from the
// lockfile that was read last: the host that the peers dial.
type hostReader struct {
	driver.Store
	host atomic.Pointer[string]
}

// Abilities returns those of the store. It is polled, so its entries pass through Read.
func (h *hostReader) Abilities() driver.Abilities { return driver.AbilitiesOf(h.Store) }

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
