// Package connection sends the requests of a store over NATS, and reports why one gets no answer.
// The client library lets a request wait for its context if a right is missing, the connection is
// lost or the server is cut off from its cluster; a leader would find out when its lease is over.
// So each request is monitored, and a supervisor replaces a connection of the store's own that
// fails. The package knows requests and answers. It knows nothing of buckets and elections.
package connection

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Conn is a connection to JetStream. Its methods may be called from many goroutines.
type Conn struct {
	nc         *nats.Conn
	js         jetstream.JetStream
	api        string      // prefix of the JetStream API's subjects
	supervisor *supervisor // nil: the connection is the caller's
	end        func()
	answers    [purposes]lastAnswer
	reads      chan struct{} // held by the reads that wait for an answer
}

func over(js jetstream.JetStream, end func()) *Conn {
	return &Conn{
		nc: js.Conn(), js: js, api: apiPrefix(js.Options()), end: end, reads: make(chan struct{}, readsAtOnce),
	}
}

// Borrow returns a Conn over the caller's connection. It changes no option and no handler of it,
// and never reconnects or closes it.
func Borrow(js jetstream.JetStream) *Conn { return over(js, func() {}) }

// Own connects with a copy of the options of the given context's connection, changed for elections
// and then by opts. A supervisor replaces the connection when it fails. Close must be called.
func Own(given jetstream.JetStream, opts []nats.Option) (*Conn, error) {
	o, err := settings(given.Conn().Opts, opts)
	if err != nil {
		return nil, err
	}
	s := supervise(&o)
	c, err := dial(o, given)
	if err != nil {
		return nil, err
	}
	s.start(c.nc)
	c.supervisor, c.end = s, s.close
	return c, nil
}

// To connects to one server alone, with the credentials and the JetStream prefix of this
// connection. The new connection ends at its first loss. Close must be called.
func (c *Conn) To(server string, within time.Duration) (*Conn, error) {
	o, err := settings(c.nc.Opts, []nats.Option{
		nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}), // the default one prints
		nats.NoReconnect(),
		nats.IgnoreDiscoveredServers(),
		nats.Timeout(within),
	})
	if err != nil {
		return nil, err
	}
	o.Url, o.Servers = server, nil
	return dial(o, c.js)
}

// dial connects. It accesses JetStream as the given context does.
func dial(o nats.Options, like jetstream.JetStream) (*Conn, error) {
	nc, err := o.Connect()
	if err != nil {
		return nil, err
	}
	js, err := sameContext(nc, like.Options())
	if err != nil {
		nc.Close()
		return nil, err
	}
	return over(js, nc.Close), nil
}

// Close closes the connection unless it is borrowed.
func (c *Conn) Close() { c.end() }

// NATS returns the connection of the client library.
func (c *Conn) NATS() *nats.Conn { return c.nc }

// JetStream returns the client library's context.
func (c *Conn) JetStream() jetstream.JetStream { return c.js }

// API returns the prefix of the JetStream API's subjects.
func (c *Conn) API() string { return c.api }

// Number returns how often the connection was replaced. Another number is another connection, which
// may lead to another server.
func (c *Conn) Number() uint64 { return c.nc.Stats().Reconnects }

// MoveOn leaves the present server for another one, unless the connection is borrowed or was
// replaced just now.
func (c *Conn) MoveOn() { c.supervisor.moveOn() }

func apiPrefix(o jetstream.JetStreamOptions) string {
	switch {
	case o.Domain != "":
		return "$JS." + o.Domain + ".API."
	case o.APIPrefix == "":
		return jetstream.DefaultAPIPrefix
	case o.APIPrefix[len(o.APIPrefix)-1] != '.':
		return o.APIPrefix + "."
	}
	return o.APIPrefix
}

// sameContext returns a context like the given one over another connection.
func sameContext(nc *nats.Conn, o jetstream.JetStreamOptions) (jetstream.JetStream, error) {
	switch {
	case o.Domain != "":
		return jetstream.NewWithDomain(nc, o.Domain)
	case o.APIPrefix != "":
		return jetstream.NewWithAPIPrefix(nc, o.APIPrefix)
	}
	return jetstream.New(nc)
}

const (
	// A connection without any traffic is found dead after the ping that follows the last one that
	// may be unanswered: 3 s.
	pingEvery   = time.Second
	pingsAtRisk = 2
	// writePatience is how long one write may take to leave, under the library's lock.
	writePatience = 2 * time.Second

	// The pause after all servers were tried grows from the first to the last.
	firstRetry = 50 * time.Millisecond
	lastRetry  = 2 * time.Second
)

// settings returns a copy of the options, fit for elections and then changed by the program's own.
func settings(of nats.Options, change []nats.Option) (nats.Options, error) {
	if of.Name == "" {
		of.Name = "tenure"
	}
	of.Name += " (elections)"
	dropHandlers(&of)
	of.AllowReconnect, of.MaxReconnect, of.RetryOnFailedConnect = true, -1, false
	of.IgnoreAuthErrorAbort = true
	of.CustomReconnectDelayCB = retryAfter
	of.ReconnectBufSize, of.FlusherTimeout, of.ReconnectOnFlusherError = -1, writePatience, true
	of.PingInterval, of.MaxPingsOut = pingEvery, pingsAtRisk
	of.UseOldRequestStyle, of.Verbose = false, false
	for _, set := range change {
		if set == nil {
			continue
		}
		if err := set(&of); err != nil {
			return nats.Options{}, fmt.Errorf("an option of OwnConnection: %w", err)
		}
	}
	return of, nil
}

// dropHandlers removes all functions of the program that are notified of something. It keeps
// functions that fetch or choose something.
func dropHandlers(o *nats.Options) {
	o.ClosedCB, o.DisconnectedCB, o.DisconnectedErrCB, o.ReconnectErrCB = nil, nil, nil, nil
	o.ConnectedCB, o.ReconnectedCB, o.DiscoveredServersCB = nil, nil, nil
	o.AsyncErrorCB, o.LameDuckModeHandler = nil, nil
	o.NoCallbacksAfterClientClose = true
}

// retryAfter returns the pause after all servers were tried. It is half fixed and half random,
// since all clients of a cluster lose it together.
func retryAfter(rounds int) time.Duration {
	d := lastRetry
	if rounds < 6 {
		d = min(firstRetry<<rounds, lastRetry)
	}
	return d/2 + rand.N(d/2)
}
