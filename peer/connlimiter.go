package peer

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
)

// originOf is the origin of a request, as far as an address shows it: a host, or a network of IPv6
// whose addresses one owner can choose.
func originOf(address string) string {
	a, err := netip.ParseAddrPort(address)
	if err != nil {
		return address
	}
	ip := a.Addr().Unmap().WithZone("")
	if ip.Is6() {
		network, _ := ip.Prefix(64) // 64 is no more than it has
		return network.String()
	}
	return ip.String()
}

// originCounter counts connections or streams: all of them, and those of each origin.
type originCounter struct {
	all  int
	from map[string]int
}

// add counts one more, unless there are as many already.
func (t *originCounter) add(origin string, most, mostFrom int) bool {
	if t.all >= most || t.from[origin] >= mostFrom {
		return false
	}
	if t.from == nil {
		t.from = map[string]int{}
	}
	t.all++
	t.from[origin]++
	return true
}

func (t *originCounter) drop(origin string) {
	t.all--
	if t.from[origin]--; t.from[origin] == 0 {
		delete(t.from, origin)
	}
}

var errTooManyConns = errors.New("too many connections")

// connLimiter is a listener that bounds connections. One origin gets half of them at most, so that
// it cannot keep others out.
type connLimiter struct {
	net.Listener
	most    int
	refused func(error)

	mu     sync.Mutex
	inside originCounter
}

// Accept closes connections that are too many at once: left waiting, they would keep others out.
func (c *connLimiter) Accept() (net.Conn, error) {
	for {
		conn, err := c.Listener.Accept()
		if err != nil {
			return nil, err
		}
		origin := originOf(conn.RemoteAddr().String())
		if c.enter(origin) {
			return &limitedConn{Conn: conn, leave: sync.OnceFunc(func() { c.left(origin) })}, nil
		}
		_ = conn.Close()
		c.refused(fmt.Errorf("%w: one from %s was closed (Config.MaxConnections)", errTooManyConns, origin))
	}
}

func (c *connLimiter) enter(origin string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.inside.add(origin, c.most, (c.most+1)/2)
}

func (c *connLimiter) left(origin string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.inside.drop(origin)
}

// limitedConn is a connection that counts until it is closed.
type limitedConn struct {
	net.Conn
	leave func()
}

// Close counts the connection out.
func (g *limitedConn) Close() error {
	defer g.leave()
	return g.Conn.Close()
}
