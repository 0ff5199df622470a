package stores

import (
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// brokerNews hears from the client library when a broker cannot be reached, and when it can again. Connections that merely
// end are no news: the library has several to each broker, and closes those that are idle.
type brokerNews struct {
	told func(up bool, err error)

	mu   sync.Mutex
	down map[string]bool
}

var _ kgo.HookBrokerConnect = (*brokerNews)(nil)

// OnBrokerConnect is called by the library after each attempt.
func (b *brokerNews) OnBrokerConnect(meta kgo.BrokerMetadata, _ time.Duration, _ net.Conn, err error) {
	at := net.JoinHostPort(meta.Host, fmt.Sprint(meta.Port))
	b.mu.Lock()
	was := b.down[at]
	b.down[at] = err != nil
	b.mu.Unlock()
	switch {
	case err != nil && !was:
		b.told(false, fmt.Errorf("broker %s: %w", at, root(err)))
	case err == nil && was:
		b.told(true, errors.New("broker "+at))
	}
}
