package natskv

import (
	"context"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/tenure-go/tenure/driver/abandon"
	"github.com/tenure-go/tenure/driver/natskv/internal/connection"
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

// connect returns the given connection, or one of the store's own.
func (o opening) connect(ctx context.Context, given jetstream.JetStream) (*connection.Conn, error) {
	if !o.own {
		return connection.Borrow(given), nil
	}
	return abandon.Run(ctx, &abandon.Calls{}, func() (*connection.Conn, error) {
		return connection.Own(given, o.connection)
	}, (*connection.Conn).Close)
}
