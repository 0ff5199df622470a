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
// out within three seconds that its server is gone; one with the library's defaults takes minutes.
// The store may also replace such a connection when that helps; for a connection that carries other
// traffic, this would do harm. Open uses only the options of the given connection. It never changes
// that connection, and the program may close it.
//
// The copy keeps these options: the servers, the way to them (dialer, TLS, proxy, an in-process
// server), the user's identity (name and password, token, NKey, JWT, certificates, with the
// functions that fetch them, which are called for this connection, too), the prefix of inboxes and
// the time limit of connecting. It leaves out functions that are notified of something, such as
// nats.DisconnectErrHandler: they would get events of a connection that the program does not know.
// It replaces all options about pings and reconnecting. The connection sends a ping each second,
// and two may be unanswered. It reconnects endlessly, also when the server refuses the credentials,
// with pauses from 50 ms to 2 s after all servers were tried. While disconnected it buffers nothing
// to send later. Its name is that of the given one with " (elections)" appended.
//
// The opts are applied last, and may include functions that are notified of something.
//
// The store replaces the connection, by one to another server if it knows one, in three cases:
//
//   - The server is silent. When a request has waited 300 ms, the store asks the server for a sign
//     of life, and waits for it 500 ms, or four times the last round trip if that is longer.
//   - The server lives, but does not serve, for example because it has lost the rest of its
//     cluster: all writes, or all reads, have failed for 2 s with an answer that explains the
//     failure, or for 4 s without an answer. A request that its caller gave up after 300 ms or more
//     counts as one without an answer. One applied write in that time keeps the store there, even
//     if all reads failed. An answered read does so only if no write failed.
//   - The server belongs to another cluster: see ErrTwoClusters.
//
// Between two replacements the store waits an eighth of the time that the outage has lasted, at
// least 1 s and at most 30 s. Requests under way then end with errors that leave their outcome
// open.
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
