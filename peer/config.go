package peer

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/internal/clock"
)

// DefaultPath is where a leader answers unless Config says otherwise.
const DefaultPath = "/health/leadership"

// Config says how peers talk to one another. All members of an election need the same Path, and TLS on all or on none.
// The zero value of each field but Networks is its default.
type Config struct {
	// Networks are those whose addresses may be dialled. A record names its leader's address, so whoever can write to
	// the store could otherwise make every follower connect to anything. What counts is the address that a name stood
	// for when it was dialled.
	Networks []netip.Prefix
	// ServeOnly makes a member that serves followers and follows nobody: no Networks are needed then. Its elections
	// want tenure.Config.NoWatch, so that they poll the store as if it could not push.
	ServeOnly bool
	// Path is where leaders are asked and Serve answers. Default: DefaultPath.
	Path string
	// ServerTLS is what Serve uses, ClientTLS what followers dial with; nil: plain HTTP. LoadTLS makes both from files.
	// A follower checks that the leader's certificate is for the host in the address of its record.
	ServerTLS, ClientTLS *tls.Config
	// Timeout bounds connecting (with the handshake, until the first answer) and each write to a follower. Default: 3 s.
	Timeout time.Duration
	// Retry is the time between tries to reach a leader, after three sooner ones: at once, after 100 ms and after 1 s.
	// Default: 5 s.
	Retry time.Duration
	// MaxStreams is how many followers of one election are served at once; more are refused. Default: 1,024.
	MaxStreams int
	// MaxStreamsPerAddress is how many of these come from one address, or one /64 network of IPv6, so
	// that no host can keep others out. Raise it behind a proxy, from which all seem to come. Default:
	// a quarter of MaxStreams, and at least 16.
	MaxStreamsPerAddress int
	// MaxConnections is how many connections Serve holds open at once, half of them at most from one
	// address; more are closed. Over plain HTTP each stream takes one. Default: 4,096.
	MaxConnections int
	// Margin is what the elections keep back of their leases: tenure.Config.Margin of their settings. A leader answers
	// until so much before its lease is over. Default, and the least that counts: that of tenure's default settings.
	Margin time.Duration
	// Clock counts how long a lease is valid: the one that the elections have, tenure.SystemClock() by default.
	Clock clock.Clock
	// OnError is told when the connection to the leader of an election fails or fails in another way, and with nil when
	// it stands again. Where this process could not serve a connection the key is empty, and no more than one report
	// comes within Retry. It may be called concurrently, holds up nothing but the connection that it is told of, and
	// must not call Close. Nil: nobody is told.
	OnError func(key string, err error)
}

func (c Config) withDefaults() Config {
	if c.Path == "" {
		c.Path = DefaultPath
	}
	if c.Timeout == 0 {
		c.Timeout = 3 * time.Second
	}
	if c.Retry == 0 {
		c.Retry = 5 * time.Second
	}
	if c.MaxStreams == 0 {
		c.MaxStreams = 1024
	}
	if c.MaxStreamsPerAddress == 0 {
		c.MaxStreamsPerAddress = max(16, c.MaxStreams/4)
	}
	if c.MaxConnections == 0 {
		c.MaxConnections = 4096
	}
	if c.Clock == nil {
		c.Clock = clock.System{}
	}
	if c.OnError == nil {
		c.OnError = func(string, error) {}
	}
	return c
}

// validate finds everything that is wrong, at once.
func (c *Config) validate(store driver.Store) error {
	problems := []error{checkStore(store), c.checkNetworks(), c.checkPath()}
	if c.Timeout < time.Millisecond {
		problems = append(problems, fmt.Errorf("Timeout is %v; it must be at least 1ms", c.Timeout))
	}
	if c.Retry < time.Millisecond {
		problems = append(problems, fmt.Errorf("Retry is %v; it must be at least 1ms", c.Retry))
	}
	if c.Margin < 0 {
		problems = append(problems, fmt.Errorf("Margin is %v; it must be at least 0", c.Margin))
	}
	problems = append(problems, atLeastOne("MaxStreams", c.MaxStreams),
		atLeastOne("MaxStreamsPerAddress", c.MaxStreamsPerAddress), atLeastOne("MaxConnections", c.MaxConnections))
	if err := errors.Join(problems...); err != nil {
		return fmt.Errorf("peer: %w", err)
	}
	return nil
}

func atLeastOne(field string, n int) error {
	if n < 1 {
		return fmt.Errorf("%s is %d; it must be at least 1", field, n)
	}
	return nil
}

func checkStore(store driver.Store) error {
	if store == nil {
		return errors.New("the store is nil")
	}
	if _, ok := store.(driver.Watcher); ok {
		return fmt.Errorf("the store (%T) pushes changes by itself; it needs no peers", store)
	}
	return nil
}

func (c *Config) checkNetworks() error {
	if len(c.Networks) == 0 && !c.ServeOnly {
		return errors.New("Networks is empty, so that no leader could be dialled; name the networks that leaders are in, " +
			"or set ServeOnly")
	}
	for _, n := range c.Networks {
		if !n.IsValid() {
			return errors.New("Networks holds an invalid prefix; make them with netip.ParsePrefix")
		}
	}
	return nil
}

// checkPath: what a mux takes for a pattern, or a URL for something else than its path, would not be found.
func (c *Config) checkPath() error {
	if !strings.HasPrefix(c.Path, "/") || strings.ContainsAny(c.Path, " {}?#%\\") || strings.Contains(c.Path, "//") {
		return fmt.Errorf("Path is %q; it must be a plain path such as %s", c.Path, DefaultPath)
	}
	return nil
}
