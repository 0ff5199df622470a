package stores

import (
	"context"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/tenure-go/tenure/compat/nats-kv-leader-elect/mixed"
	"github.com/tenure-go/tenure/driver/natskv"
)

// open first connects to find out whether that works. Then the driver makes a connection of its
// own, with the settings that elections need.
func (n *NATS) open(ctx context.Context, o Options) (*Store, error) {
	nc, js, err := n.connect(o)
	if err != nil {
		return nil, explainConnect(err)
	}
	nc.Close()
	opts := []natskv.Option{natskv.OwnConnection(options(o)...)}
	if o.Create {
		opts = append(opts, natskv.Create())
	}
	if n.Pristine {
		opts = append(opts, natskv.Pristine())
	}
	if n.Migrating {
		opts = append(opts, mixed.Migrating())
	}
	kv, err := natskv.Open(ctx, js, n.Bucket, opts...)
	if err != nil {
		return nil, n.explain(err)
	}
	return &Store{Driver: kv, close: kv.Close}, nil
}

func (n *NATS) connect(o Options) (*nats.Conn, jetstream.JetStream, error) {
	t, err := n.target(o)
	if err != nil {
		return nil, nil, err
	}
	nc, err := t.connect()
	if err != nil {
		return nil, nil, err
	}
	js, err := t.jetStream(nc)
	if err != nil {
		nc.Close()
	}
	return nc, js, err
}

// quiet replaces the default handler, which prints.
var quiet = nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {})

// options returns the name of the connection and the handlers of its events. The driver adds the
// options that elections need.
func options(o Options) []nats.Option {
	told := o.OnConnection
	if told == nil {
		told = func(bool, error) {}
	}
	return []nats.Option{
		nats.Name(o.Client),
		quiet,
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) { told(false, err) }),
		nats.ReconnectHandler(func(*nats.Conn) { told(true, nil) }),
	}
}
