package peer

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
)

// originOf returns the origin of a request by its address: a host, or the /64 network of an IPv6
// address, since one owner can choose all addresses of it.
func originOf(address string) string {
	a, err := netip.ParseAddrPort(address)
	if err != nil {
		return address
	}
	ip := a.Addr().Unmap().WithZone("")
	if ip.Is6() {
		network, _ := ip.Prefix(64) // no error: 64 bits are valid for IPv6
		return network.String()
	}
	return ip.String()
}

// originCounter counts connections or streams, in all and by origin.
type originCounter struct {
	all      int
	byOrigin map[string]int
}

// add counts one more, unless a limit is reached.
func (t *originCounter) add(origin string, most, mostFrom int) bool {
	if t.all >= most || t.byOrigin[origin] >= mostFrom {
		return false
	}
	if t.byOrigin == nil {
		t.byOrigin = map[string]int{}
	}
	t.all++
	t.byOrigin[origin]++
	return true
}

func (t *originCounter) drop(origin string) {
	t.all--
	if t.byOrigin[origin]--; t.byOrigin[origin] == 0 {
		delete(t.byOrigin, origin)
	}
}

var errTooManyConns = errors.New("too many connections")

// connLimiter is a listener that bounds connections. One origin gets half of them at most, so that
// it cannot keep others out.
type connLimiter struct {
	net.Listener
	most    int
	refused func(error)

	mu   sync.Mutex
	open originCounter
}

// Accept closes connections beyond the limits. If they waited instead, they would keep others out.
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
	return c.open.add(origin, c.most, (c.most+1)/2)
}

func (c *connLimiter) left(origin string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open.drop(origin)
}

// limitedConn is a connection that the limiter counts until it is closed.
type limitedConn struct {
	net.Conn
	leave func()
}

// Close closes the connection and stops counting it.
func (g *limitedConn) Close() error {
	defer g.leave()
	return g.Conn.Close()
}
