package peer

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"github.com/tenure-go/tenure/driver"
)

// DefaultPath is the path that a leader serves unless Config sets another.
const DefaultPath = "/health/leadership"

// Config holds the settings of the connections between peers. All members of an election need the
// same Path, and TLS on all or on none. The zero value of each field but Networks means its
// default:
//
//	field                 default                      limits
//	Networks              required
//	Path                  /health/leadership           the same for all members
//	ServerTLS,ClientTLS   plain HTTP
//	TLS                   ServerTLS and ClientTLS
//	Timeout               3 s                          at least 1 ms
//	Retry                 5 s                          at least 1 ms
//	MaxStreams            1,024                        at least 1
//	MaxStreamsPerAddress  MaxStreams / 4, at least 16  at least 1
//	MaxConnections        4,096                        at least 1
//	OnError               errors are not reported
type Config struct {
	// Networks are the address ranges that followers may dial. A record names its leader's address,
	// so without this limit a writer of the store could make every follower connect to any address.
	// The check applies to the address that a name resolves to when it is dialed.
	Networks []netip.Prefix
	// Path is the path of the URL that Serve answers and followers request.
	Path string
	// ServerTLS is the TLS configuration of Serve, and ClientTLS that of followers. LoadTLS
	// makes both from files. A follower checks that the leader's certificate is for the host in the
	// address of its record.
	ServerTLS, ClientTLS *tls.Config
	// TLS returns both configurations. Set it in place of ServerTLS and ClientTLS if certificates
	// or authorities are renewed while the program runs. New calls it, and each connection calls it
	// again, perhaps several at once. It can call LoadTLS. While it returns an error, the last
	// configurations stay in use. Those that were nil at first must stay nil.
	TLS func() (server, client *tls.Config, err error)
	// Timeout bounds a follower's connection from the dial to the first event, and each write to a
	// follower.
	Timeout time.Duration
	// Retry is the time between attempts to reach a leader. The first three come sooner: at once,
	// after 100 ms and after 1 s.
	Retry time.Duration
	// MaxStreams is how many followers of one election this process serves at once; it refuses
	// more.
	MaxStreams int
	// MaxStreamsPerAddress is how many of these come from one address, or one /64 network of IPv6,
	// so that no host can keep others out. Raise it behind a proxy, because all streams come from
	// its address.
	MaxStreamsPerAddress int
	// MaxConnections is how many connections each Serve holds open at once. At most half of them
	// may come from one address or /64 network. Serve closes further connections. Over plain HTTP
	// each stream takes one.
	MaxConnections int
	// OnError is called with an error when the connection to the leader of an election fails, and
	// with nil when it works again. It is not called again for the same failure. The key is empty
	// if this process could not serve a connection: such reports are at least Retry apart, and
	// those with one cause become rare. It is also empty for ErrCertificates. OnError may be called
	// concurrently. It delays only the connection that it reports on. It must not call Close.
	OnError func(key string, err error)
}

func (c Config) withDefaults() Config {
	c.Path = cmp.Or(c.Path, DefaultPath)
	c.Timeout, c.Retry = cmp.Or(c.Timeout, 3*time.Second), cmp.Or(c.Retry, 5*time.Second)
	c.MaxStreams = cmp.Or(c.MaxStreams, 1024)
	c.MaxStreamsPerAddress = cmp.Or(c.MaxStreamsPerAddress, max(16, c.MaxStreams/4))
	c.MaxConnections = cmp.Or(c.MaxConnections, 4096)
	if c.OnError == nil {
		c.OnError = func(string, error) {}
	}
	return c
}

// validate returns all problems at once.
func (c *Config) validate(store driver.Store) error {
	problems := []error{checkStore(store), c.checkNetworks(), c.checkPath()}
	if c.TLS != nil && (c.ServerTLS != nil || c.ClientTLS != nil) {
		problems = append(problems, errors.New("TLS is set besides ServerTLS or ClientTLS, which it replaces; leave them out"))
	}
	problems = append(problems,
		atLeast("Timeout", c.Timeout, time.Millisecond), atLeast("Retry", c.Retry, time.Millisecond))
	problems = append(problems, atLeast("MaxStreams", c.MaxStreams, 1),
		atLeast("MaxStreamsPerAddress", c.MaxStreamsPerAddress, 1), atLeast("MaxConnections", c.MaxConnections, 1))
	if err := errors.Join(problems...); err != nil {
		return fmt.Errorf("peer: %w", err)
	}
	return nil
}

func atLeast[T int | time.Duration](field string, value, least T) error {
	if value < least {
		return fmt.Errorf("%s is %v; it must be at least %v", field, value, least)
	}
	return nil
}

func checkStore(store driver.Store) error {
	if store == nil {
		return errors.New("the store is nil")
	}
	if driver.AbilitiesOf(store).Watcher != nil {
		return fmt.Errorf("the store (%T) pushes changes by itself; it needs no peers", store)
	}
	return nil
}

func (c *Config) checkNetworks() error {
	if len(c.Networks) == 0 {
		return errors.New("Networks is empty, so that no leader could be dialed; name the networks that leaders are in")
	}
	for _, n := range c.Networks {
		if !n.IsValid() {
			return errors.New("Networks holds an invalid prefix; make them with netip.ParsePrefix")
		}
	}
	return nil
}

// checkPath refuses a path that a mux takes for a pattern, or a URL for something else than its
// path: it would not be found.
func (c *Config) checkPath() error {
	if !strings.HasPrefix(c.Path, "/") || strings.ContainsAny(c.Path, " {}?#%\\") || strings.Contains(c.Path, "//") {
		return fmt.Errorf("Path is %q; it must be a plain path such as %s", c.Path, DefaultPath)
	}
	return nil
}
