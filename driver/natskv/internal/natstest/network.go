package natstest

import (
	"fmt"
	"net"
	"net/url"
	"sync"
	"testing"
)

// inside is a network within this process, on which servers and proxies have addresses.
var inside = &network{at: map[string]dialing{}}

type dialing func() (net.Conn, error)

type network struct {
	mu   sync.Mutex
	last int // the last port given
	at   map[string]dialing
}

// address returns an address that is not in use.
func (n *network) address() (host string, port int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.last++
	return fmt.Sprintf("10.0.0.%d", 1+n.last/50_000), 10_000 + n.last%50_000
}

// put makes an address lead there until the test is over.
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

// Dial reaches addresses on this network and on the machine itself.
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
	return nil, fmt.Errorf("no server is at %s", address)
}

func isLoopback(address string) bool {
	host, _, _ := net.SplitHostPort(address)
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}

// Host returns the host and port of a URL.
func Host(t testing.TB, text string) string {
	t.Helper()
	u, err := url.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return u.Host
}
