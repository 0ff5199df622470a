package stores

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// brokerNews reports when a broker cannot be reached, and when it can again. The end of a
// connection alone is not reported: the library has several to each broker, and closes idle ones.
type brokerNews struct {
	told func(up bool, err error) // may be nil

	mu    sync.Mutex
	down  map[string]bool
	taken map[string]bool // the brokers that have accepted a connection
}

func newBrokerNews(told func(bool, error)) *brokerNews {
	return &brokerNews{told: told, down: map[string]bool{}, taken: map[string]bool{}}
}

var _ kgo.HookBrokerConnect = (*brokerNews)(nil)

// OnBrokerConnect is called by the library after each attempt.
func (b *brokerNews) OnBrokerConnect(meta kgo.BrokerMetadata, _ time.Duration, conn net.Conn, err error) {
	at := net.JoinHostPort(meta.Host, fmt.Sprint(meta.Port))
	b.mu.Lock()
	was := b.down[at]
	b.down[at] = err != nil
	if conn != nil { // also if the handshake with the broker failed
		b.taken[at] = true
	}
	b.mu.Unlock()
	switch {
	case b.told == nil:
	case err != nil && !was:
		b.told(false, fmt.Errorf("broker %s: %w", at, root(err)))
	case err == nil && was:
		b.told(true, errors.New("broker "+at))
	}
}

// silentError is a timeout of brokers that have accepted connections. Another kind of server may
// listen there, such as a web server that waits for more data.
type silentError struct {
	at  string
	err error
}

func (e *silentError) Error() string { return e.at + " accepts connections and does not answer" }
func (e *silentError) Unwrap() error { return e.err }

// silence returns a silentError for a timeout, if a broker has accepted a connection.
func (b *brokerNews) silence(err error) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	var late net.Error
	if len(b.taken) == 0 || !errors.As(err, &late) || !late.Timeout() {
		return err
	}
	return &silentError{strings.Join(slices.Sorted(maps.Keys(b.taken)), ","), err}
}
