package stores

import (
	"errors"
	"io/fs"
	"slices"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/tenure-go/tenure/cmd/internal/fault"
)

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

func (n *NATS) target(o Options) (target, error) {
	if n.Context != "" {
		return fromContext(n.Context, o.stale)
	}
	return target{url: strings.Join(n.Servers, ","), options: n.login()}, nil
}

// login keeps the credentials out of the URL, which the client may quote in an error.
func (n *NATS) login() []nats.Option {
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

// connect connects.
func (t target) connect() (*nats.Conn, error) {
	options := slices.Concat(t.options, []nats.Option{nats.Timeout(dialTimeout), quiet, keepRefusals})
	if t.login != nil {
		options = append(options, t.login.follow)
	}
	return nats.Connect(t.url, options...)
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
