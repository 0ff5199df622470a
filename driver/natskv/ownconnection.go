package natskv

import (
	"context"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/tenure-go/tenure/driver/abandon"
	"github.com/tenure-go/tenure/driver/natskv/internal/connection"
)

// OwnConnection lets Open connect by itself, with a copy of the options of the connection behind
// the JetStream context, and keep that connection for the elections alone. Such a connection finds
// out within one to three seconds that its server is gone; one with the library's defaults takes
// minutes. It may also be replaced when that helps, which would harm a connection that carries
// other traffic. The given connection is used only for its options; it is never touched, and may be
// closed.
//
// These options are kept: the servers, the way to them (dialer, TLS, proxy, an in-process server),
// the user's identity (name and password, token, NKey, JWT, certificates, with the functions that
// fetch them, which are called for this connection, too), the prefix of inboxes and the time limit
// of connecting. Functions that are notified of something, such as nats.DisconnectErrHandler, are
// not kept: they would get events of a connection that the program does not know. All options about
// pings and reconnecting are replaced. The connection sends a ping each second, and two may be
// unanswered. It reconnects endlessly, also when the server refuses the credentials, with pauses
// from 50 ms to 2 s after all servers were tried. It buffers nothing to send after that. The name
// is the given one's with " (elections)" appended.
//
// The options given here are applied after all this, and may include such functions.
//
// When a request has waited 300 ms, the server is asked for a sign of life. If it gives none within
// 500 ms (four times the usual where it is far away), the connection is replaced, with another
// server if one is known. It also moves on from a server that gives signs of life while all writes,
// or all reads, have failed for 2 s with an answer that explains the failure, or for 4 s in
// silence, as with a server that has lost the rest of its cluster. The reason why a caller's
// context ended never counts, only that no answer came. The connection is replaced at most once a
// second, and in a long outage every 30 s. Requests under way then end with errors that leave their
// outcome open.
//
// Close of the Store closes the connection.
func OwnConnection(opts ...nats.Option) Option {
	return func(o *opening) { o.own, o.connection = true, opts }
}

func (o opening) connect(ctx context.Context, given jetstream.JetStream) (*connection.Conn, error) {
	if !o.own {
		return connection.Borrow(given), nil
	}
	return abandon.Run(ctx, &abandon.Calls{}, func() (*connection.Conn, error) {
		return connection.Own(given, o.connection)
	}, (*connection.Conn).Close)
}
