package stores

import (
	"context"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/tenure-go/tenure/driver/natskv"
)

// Store is an open store with a connection of its own.
type Store struct {
	*natskv.Store
	nc *nats.Conn
}

// Options say how to open a store.
type Options struct {
	// Client is the name of the connection that operators see on the server.
	Client string
	// Create makes the bucket if it is missing.
	Create bool
	// OnConnection is told when the connection is lost, with the reason if there is one, and when it is back; it may
	// be nil.
	OnConnection func(up bool, err error)
}

// Open connects and opens the bucket. Its errors are for people.
func Open(ctx context.Context, p Place, o Options) (*Store, error) {
	nc, js, err := connect(p, o)
	if err != nil {
		return nil, explainConnect(p, err)
	}
	var opts []natskv.Option
	if o.Create {
		opts = append(opts, natskv.Create())
	}
	kv, err := natskv.Open(ctx, js, p.Bucket, opts...)
	if err != nil {
		nc.Close()
		return nil, Explain(p, err)
	}
	return &Store{Store: kv, nc: nc}, nil
}

// Close ends the watches and the connection.
func (s *Store) Close() error {
	defer s.nc.Close()
	return s.Store.Close()
}

// Limits is a store that says which leases and keys are possible before there is one. Nothing can be read or written.
func Limits() *natskv.Store { return natskv.FromKeyValue(nil) }

func connect(p Place, o Options) (*nats.Conn, jetstream.JetStream, error) {
	t, err := p.target()
	if err != nil {
		return nil, nil, err
	}
	nc, err := nats.Connect(t.url, append(t.options, options(o)...)...)
	if err != nil {
		return nil, nil, err
	}
	js, err := t.jetStream(nc)
	if err != nil {
		nc.Close()
	}
	return nc, js, err
}

// options suit elections. A server that has died must be noticed within a few seconds, and a write that could not be sent
// must fail at once instead of being sent when nobody waits for it any more.
func options(o Options) []nats.Option {
	told := o.OnConnection
	if told == nil {
		told = func(bool, error) {}
	}
	return []nats.Option{
		nats.Name(o.Client),
		nats.Timeout(2 * time.Second),
		nats.PingInterval(time.Second),
		nats.MaxPingsOutstanding(2),
		nats.MaxReconnects(-1),
		nats.ReconnectWait(200 * time.Millisecond),
		nats.ReconnectBufSize(-1),
		nats.NoCallbacksAfterClientClose(),
		nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}), // the default one prints
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) { told(false, err) }),
		nats.ReconnectHandler(func(*nats.Conn) { told(true, nil) }),
	}
}
