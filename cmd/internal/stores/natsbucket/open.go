package natsbucket

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/tenure-go/tenure/cmd/internal/fault"
	"github.com/tenure-go/tenure/cmd/internal/stores/kind"
	"github.com/tenure-go/tenure/compat/nats-kv-leader-elect/mixed"
	"github.com/tenure-go/tenure/driver/natskv"
)

// Open connects with the settings that elections need.
func (n *Place) Open(ctx context.Context, o kind.Options) (*kind.Opened, error) {
	js, err := n.unconnected(o)
	if err != nil {
		return nil, explainConnect(err)
	}
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
	if broken, ok := errors.AsType[*natskv.ConnectError](err); ok {
		return nil, explainConnect(broken.Err)
	}
	if err != nil {
		return nil, n.Explain(err)
	}
	return &kind.Opened{Driver: kv, Close: kv.Close}, nil
}

// unconnected returns JetStream over a connection that only has the options for the driver to
// connect with.
func (n *Place) unconnected(o kind.Options) (jetstream.JetStream, error) {
	t, err := n.target(o)
	if err != nil {
		return nil, err
	}
	all, err := t.all()
	if err != nil {
		return nil, err
	}
	return t.jetStream(&nats.Conn{Opts: *all})
}

// quiet replaces the default handler, which prints.
var quiet = nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {})

// options returns the name of the connection and the handlers of its events. The driver adds the
// options that elections need.
func options(o kind.Options) []nats.Option {
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

// target holds the arguments for the NATS client.
type target struct {
	url     string
	options []nats.Option
	domain  string
	prefix  string
	asks    bool // a command knows the credentials
	// login is nil if the credentials are in a URL, where nothing replaces them.
	login *natsLogin
}

func (n *Place) target(o kind.Options) (target, error) {
	if n.Context != "" {
		return fromContext(n.Context, o.Stale)
	}
	return target{url: strings.Join(n.Servers, ","), options: n.login()}, nil
}

// login keeps the credentials out of the URL, which the client may quote in an error.
func (n *Place) login() []nats.Option {
	switch {
	case n.User != "":
		return []nats.Option{nats.UserInfo(n.User, n.Password)}
	case n.Token != "":
		return []nats.Option{nats.Token(n.Token)}
	}
	return nil
}

func fromContext(name string, stale func(error)) (target, error) {
	t, err := readTarget(name)
	if err == nil {
		t.login, err = newLogin(name, t, stale)
	}
	if err != nil {
		return target{}, &contextError{err}
	}
	return t, nil
}

func readTarget(name string) (target, error) {
	c, err := readContext(name)
	if err != nil {
		return target{}, err
	}
	options, err := c.options()
	if err != nil {
		return target{}, err
	}
	return target{url: c.URL, options: options, domain: c.Domain, prefix: c.APIPrefix, asks: c.asks()}, nil
}

// all returns the options of the client.
func (t target) all() (*nats.Options, error) {
	o := nats.GetDefaultOptions()
	for server := range strings.SplitSeq(t.url, ",") {
		if server = strings.TrimSpace(server); server != "" {
			o.Servers = append(o.Servers, server)
		}
	}
	options := slices.Concat(t.options, []nats.Option{nats.Timeout(dialTimeout), keepRefusals})
	if t.login != nil {
		options = append(options, t.login.follow)
	}
	for _, set := range options {
		if err := set(&o); err != nil {
			return nil, err
		}
	}
	return &o, nil
}

// contextError is an error of the context itself, not of its servers.
type contextError struct{ err error }

// Error leaves out the name of a file that is a key or a token instead.
func (e *contextError) Error() string { return shownFile(e.err) }

func (e *contextError) Unwrap() error { return e.err }

// shownFile returns the text of an error. If the error names a file that may be a key instead, the
// text leaves out the name.
func shownFile(err error) string {
	text := err.Error()
	if file, ok := errors.AsType[*fs.PathError](err); ok {
		text = strings.ReplaceAll(text, file.Path, fault.Shown(file.Path))
	}
	return text
}

func (t target) jetStream(nc *nats.Conn) (jetstream.JetStream, error) {
	switch {
	case t.domain != "":
		return jetstream.NewWithDomain(nc, t.domain)
	case t.prefix != "":
		return jetstream.NewWithAPIPrefix(nc, t.prefix)
	}
	return jetstream.New(nc)
}
