package natskv

import (
	"fmt"
	"net"
	"net/url"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats-server/v2/server/ats"
)

// inside is a network within this process, on which servers and proxies have addresses.
var inside = &network{at: map[string]dialing{}}

type dialing func() (net.Conn, error)

type network struct {
	mu   sync.Mutex
	last int // the last port given
	at   map[string]dialing
}

// address is one that nobody has.
func (n *network) address() (host string, port int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.last++
	return fmt.Sprintf("10.0.0.%d", 1+n.last/50_000), 10_000 + n.last%50_000
}

// put has an address lead there until the test is over.
func (n *network) put(t testing.TB, address string, to dialing) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.at[address] = to
	t.Cleanup(func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		delete(n.at, address)
	})
}

// Dial reaches what is on this network, and the machine's own addresses.
func (n *network) Dial(over, address string) (net.Conn, error) {
	n.mu.Lock()
	to, known := n.at[address]
	n.mu.Unlock()
	switch {
	case known:
		return to()
	case isLoopback(address):
		return net.Dial(over, address)
	}
	return nil, fmt.Errorf("nobody is at %s", address)
}

func isLoopback(address string) bool {
	host, _, _ := net.SplitHostPort(address)
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}

func hostOf(t testing.TB, text string) string {
	t.Helper()
	u, err := url.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return u.Host
}

// inBubble runs a test in virtual time, on a server within the bubble if it starts one.
func inBubble(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	shared()
	emptyPools()
	defer emptyPools()
	synctest.Test(t, test)
}

// virtual reports whether the caller is in a bubble, whose clock starts in the year 2000.
func virtual() bool { return time.Now().Year() < 2020 }

// shared is the clock of all servers of a process: the first of them starts it, which must not be within a bubble.
var shared = sync.OnceFunc(ats.Register)

// emptyPools throws away the timers that the client library keeps for later: none may pass from one bubble to another.
func emptyPools() {
	runtime.GC()
	runtime.GC()
}
