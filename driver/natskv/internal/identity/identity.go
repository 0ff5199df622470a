// Package identity finds out whether connections lead to the same stream. Names do not show that,
// because two clusters may have buckets, streams and servers of the same names; a stream is
// identified by the time at which it was created. A candidate that went on with the stream of
// another cluster would be a second leader. So the store checks the identity after each reconnect,
// and an inspection asks all servers that a program was given.
package identity

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tenure-go/tenure/driver/natskv/internal/connection"
)

// ErrTwoClusters is that of package natskv.
var ErrTwoClusters = errors.New("there are two buckets of this name")

// ClockSkew is how far the clocks of two servers of one cluster may be apart.
const ClockSkew = time.Minute

// Stream is the identity of the stream that a store uses: the time at which it was created, since
// no two streams are created at the same nanosecond. The zero value is for a store that has not
// seen a stream yet.
type Stream struct {
	mu         sync.Mutex
	created    time.Time // zero: none was seen yet
	seen       time.Time // when it was last there, by the clock of its server
	at         time.Time // the same by the clock of this machine
	connection uint64    // the number of the connection over which it was seen

	confirming sync.Mutex // held while the store checks where a new connection leads
}

// Check refuses a stream that already existed while another one was in use under its name: it
// returns an error that wraps ErrTwoClusters. A stream that was created later replaced the other,
// and is for the protocol to judge. Now is the time by the clock of the stream's server.
func (s *Stream) Check(created, now time.Time, connection uint64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case created.IsZero():
		return nil // an old server
	case !s.created.IsZero() && !created.Equal(s.created) && created.Before(s.seen.Add(-ClockSkew)):
		return fmt.Errorf("%w: the stream here was made on %s, and another one, made on %s, was in use "+
			"until %s: connect to the servers of one cluster only; if this is the right bucket, restart "+
			"this process",
			ErrTwoClusters, Stamp(created), Stamp(s.created), Stamp(s.seen))
	case !created.Equal(s.created):
		s.created, s.seen = created, now
	case now.After(s.seen):
		// A server whose clock is ahead is believed only within a limit.
		if s.seen = s.seen.Add(time.Since(s.at) + ClockSkew); now.Before(s.seen) {
			s.seen = now
		}
	}
	s.connection, s.at = connection, time.Now()
	return nil
}

// Stamp writes a time for people.
func Stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// Met returns when the last stream that the store saw was created, and whether the store saw it
// over the connection with this number. The time is zero if the store saw none.
func (s *Stream) Met(connection uint64) (created time.Time, here bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.created, s.connection == connection
}

// Confirm checks before a write that a new connection leads to the same stream as the old one did.
// A sequence of another stream could be the expected one by chance. Look must Check the stream and
// return when it was created.
func (s *Stream) Confirm(connection func() uint64, look func() (time.Time, error)) error {
	was, here := s.Met(connection())
	if here {
		return nil
	}
	s.confirming.Lock() // for as long as a request may take; the other writes would ask the same
	defer s.confirming.Unlock()
	created, here := s.Met(connection()) // another write may have looked
	if !here {
		var err error
		if created, err = look(); err != nil {
			return err
		}
	}
	if !was.IsZero() && !created.Equal(was) {
		return errors.New("the bucket was recreated, so the version that the write expects may belong to another record")
	}
	return nil
}

// probeWithin bounds the requests to the other servers. One that is down is not a finding.
const probeWithin = 2 * time.Second

// Sighting is the stream that another of the configured servers has under the same name.
type Sighting struct {
	Server  string
	Created time.Time // zero: it has none
}

// CreatedAt returns when a server's stream was created, zero if it has none.
type CreatedAt func(ctx context.Context, there *connection.Conn) (time.Time, error)

// ProbeCluster asks each of the configured servers except the connected one, over a connection that
// ends at once, when its stream was created. It leaves out those that do not answer.
func ProbeCluster(ctx context.Context, c *connection.Conn, created CreatedAt) []Sighting {
	ctx, cancel := context.WithTimeout(ctx, probeWithin)
	defer cancel()
	var all []Sighting
	var mu sync.Mutex
	var probes sync.WaitGroup
	for _, server := range otherServers(c) {
		probes.Go(func() {
			there, err := c.To(server, probeWithin)
			if err != nil {
				return
			}
			defer there.Close()
			at, err := created(ctx, there)
			if err != nil {
				return
			}
			mu.Lock()
			defer mu.Unlock()
			all = append(all, Sighting{Server: bare(server), Created: at})
		})
	}
	probes.Wait()
	slices.SortFunc(all, func(a, b Sighting) int { return strings.Compare(a.Server, b.Server) })
	return all
}

// otherServers returns the URLs that the program gave, without those that servers reported about
// each other.
func otherServers(c *connection.Conn) []string {
	o := c.NATS().Opts
	if o.InProcessServer != nil {
		return nil
	}
	given := slices.Clone(o.Servers)
	if o.Url != "" {
		given = append(given, o.Url)
	}
	here := bare(c.NATS().ConnectedUrl())
	return slices.DeleteFunc(given, func(server string) bool { return bare(server) == here })
}

// bare returns a server's address without credentials.
func bare(server string) string {
	u, err := url.Parse(server)
	if err != nil || u.Host == "" {
		return server
	}
	return u.Host
}
