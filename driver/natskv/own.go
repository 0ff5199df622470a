package natskv

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/tenure-go/tenure/driver/abandon"
)

const (
	// A connection without any traffic is found dead after the ping that follows the last one that
	// may be unanswered: 3 s.
	pingEvery     = time.Second
	pingsAtRisk   = 2
	writePatience = 2 * time.Second // how long one write may take to leave; the library's lock is held meanwhile

	// The pause after all servers were tried grows from the first to the last.
	firstRetry = 50 * time.Millisecond
	lastRetry  = 2 * time.Second
)

// OwnConnection lets Open connect by itself, with a copy of the options of the connection behind
// the JetStream context, and keep that connection for the elections alone: it finds out within a
// second or three that its server is gone, where one with the library's defaults takes minutes, and
// it may be made anew when that helps, which nobody would do to a connection that carries other
// traffic. Of the given connection nothing but the options is used; it is never touched, and may be
// closed.
//
// Kept are the servers, the way to them (dialer, TLS, proxy, an in-process server) and who the user
// is (name and password, token, NKey, JWT, certificates, with the functions that fetch them, which
// are called for this connection too), the prefix of inboxes and the time limit of connecting. Not
// kept are all functions that are told something, such as nats.DisconnectErrHandler: they would
// hear of a connection that the program does not know. What can be set about pings and reconnecting
// is replaced: a ping each second, of which two may be unanswered; endless reconnecting, also when
// the server refuses the credentials, with pauses from 50 ms to 2 s once all servers were tried;
// nothing is kept back to be sent after that. The name is the given one's with " (elections)"
// behind it.
//
// The options given here come after all this, and may have such functions.
//
// When a request has waited 300 ms the server is asked for a sign of life. If it gives none within
// 500 ms (four times the usual where it is far away) the connection is made anew, with another
// server if one is known. It also moves on from a server that gives signs of life while all writes,
// or all reads, have failed for 2 s with an answer that says so, or for 4 s in silence, as with one
// that has lost the rest of its cluster. Which way a caller's context ended never counts, only that
// no answer came. It does this at most once a second, in a long outage each 30 s. Requests under
// way then end with errors that leave their outcome open.
//
// Close of the Store closes the connection.
func OwnConnection(opts ...nats.Option) Option {
	return func(o *opening) { o.own, o.connection = true, opts }
}

// connect returns a context over a connection of our own.
func (o opening) connect(given jetstream.JetStream) (jetstream.JetStream, *keeper, error) {
	settings, err := o.settings(given.Conn().Opts)
	if err != nil {
		return nil, nil, err
	}
	k := newKeeper(&settings)
	if err := k.connect(settings); err != nil {
		return nil, nil, err
	}
	js, err := over(k.nc, given.Options())
	if err != nil {
		k.close()
		return nil, nil, err
	}
	return js, k, nil
}

// settings are a copy of the given ones, made fit.
func (o opening) settings(of nats.Options) (nats.Options, error) {
	if of.Name == "" {
		of.Name = "tenure"
	}
	of.Name += " (elections)"
	deafen(&of)
	of.AllowReconnect, of.MaxReconnect, of.RetryOnFailedConnect, of.IgnoreAuthErrorAbort = true, -1, false, true
	of.CustomReconnectDelayCB = retryAfter
	of.ReconnectBufSize, of.FlusherTimeout, of.ReconnectOnFlusherError = -1, writePatience, true
	of.PingInterval, of.MaxPingsOut = pingEvery, pingsAtRisk
	of.UseOldRequestStyle, of.Verbose = false, false
	for _, set := range o.connection {
		if set == nil {
			continue
		}
		if err := set(&of); err != nil {
			return nats.Options{}, fmt.Errorf("an option of OwnConnection: %w", err)
		}
	}
	return of, nil
}

// deafen takes out all functions of the program's that are told something. Those that fetch or
// choose something stay.
func deafen(o *nats.Options) {
	o.ClosedCB, o.DisconnectedCB, o.DisconnectedErrCB, o.ConnectedCB, o.ReconnectedCB = nil, nil, nil, nil, nil
	o.DiscoveredServersCB, o.AsyncErrorCB, o.ReconnectErrCB, o.LameDuckModeHandler = nil, nil, nil, nil
	o.NoCallbacksAfterClientClose = true
}

// retryAfter is half fixed and half random, since all clients of a cluster lose it together.
func retryAfter(rounds int) time.Duration {
	d := lastRetry
	if rounds < 6 {
		d = min(firstRetry<<rounds, lastRetry)
	}
	return d/2 + rand.N(d/2)
}

// over makes a context as the given one over another connection.
func over(nc *nats.Conn, o jetstream.JetStreamOptions) (jetstream.JetStream, error) {
	switch {
	case o.Domain != "":
		return jetstream.NewWithDomain(nc, o.Domain)
	case o.APIPrefix != "":
		return jetstream.NewWithAPIPrefix(nc, o.APIPrefix)
	}
	return jetstream.New(nc)
}

// dialled is a context and, if the connection behind it is our own, who keeps that.
type dialled struct {
	js   jetstream.JetStream
	keep *keeper
}

// reach returns the given context, or one over a connection of our own.
func (o opening) reach(ctx context.Context, given jetstream.JetStream) (dialled, error) {
	if !o.own {
		return dialled{js: given}, nil
	}
	return abandon.Run(ctx, &abandon.Calls{}, func() (dialled, error) {
		js, keep, err := o.connect(given)
		return dialled{js, keep}, err
	}, func(d dialled) { d.keep.close() })
}
