package stores

import (
	"context"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/tenure-go/tenure/driver/natskv"
)

// open connects and opens the bucket.
func (n *NATS) open(ctx context.Context, o Options) (*Store, error) {
	nc, js, err := n.connect(o)
	if err != nil {
		return nil, explainConnect(err)
	}
	var opts []natskv.Option
	if o.Create {
		opts = append(opts, natskv.Create())
	}
	kv, err := natskv.Open(ctx, js, n.Bucket, opts...)
	if err != nil {
		nc.Close()
		return nil, n.explain(err)
	}
	return &Store{Driver: kv, close: func() error {
		defer nc.Close()
		return kv.Close()
	}}, nil
}

func (n *NATS) connect(o Options) (*nats.Conn, jetstream.JetStream, error) {
	t, err := n.target()
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
