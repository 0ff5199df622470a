// Package natsbucket describes stores in buckets of NATS.
package natsbucket

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/tenure-go/tenure/cmd/internal/fault"
	"github.com/tenure-go/tenure/cmd/internal/stores/kind"
	"github.com/tenure-go/tenure/compat/nats-kv-leader-elect/mixed"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/natskv"
)

// Place is a key-value bucket of JetStream. A URL or a context of the nats command names its
// servers.
type Place struct {
	// Context names a context of the nats command, which has the servers and the credentials;
	// empty: they follow here.
	Context string `json:"context,omitempty"`
	// Servers are URLs without credentials.
	Servers  []string `json:"servers,omitempty"`
	User     string   `json:"user,omitempty"`
	Password string   `json:"password,omitempty"`
	Token    string   `json:"token,omitempty"`
	Bucket   string   `json:"bucket"`
	// Migrating: candidates of nats-kv-leader-elect take part.
	Migrating bool `json:"migrating,omitempty"`
	// Pristine: no living member has used an earlier bucket of this name, so the first election in
	// an empty bucket need not wait.
	Pristine bool `json:"pristine,omitempty"`
}

// The parameters of URLs.
const (
	migrating = "migrating=true"
	pristine  = "pristine=true"
)

// Kind describes this kind of store.
func Kind() *kind.Kind {
	return &kind.Kind{
		Key:       "nats",
		Container: "bucket",
		Schemes: []kind.Scheme{
			{Name: "nats", Form: "nats://[USER:PASSWORD@]HOST/BUCKET"},
			{Name: "tls", Form: "tls://..."},
		},
		About: "NATS, --store nats://[USER:PASSWORD@]HOST[:PORT],.../BUCKET[?...] or tls://..., takes these parameters",
		Parameters: []kind.Parameter{
			{Name: "migrating", Value: "true", Fixed: true, Meaning: "candidates of nats-kv-leader-elect take part"},
			{Name: "pristine", Value: "true", Fixed: true,
				Meaning: "you know that no candidate used an earlier bucket of this name: so none has to wait for one lease"},
		},
		Notes:       "With --context NAME[/BUCKET] the servers and credentials come from a context of the nats command.",
		TokenDigits: len("1795270861001002"), // microseconds of a server's clock
		DemoLease:   2 * time.Second,
		Parse:       func(_, raw string) (kind.Place, error) { return parse(raw) },
		Empty:       func() kind.Place { return new(Place) },
	}
}

// ParseContext reads NAME[/BUCKET]; bucket is the default. The name of a context has no slash.
func ParseContext(raw, bucket string) (*Place, error) {
	name, own, ok := strings.Cut(raw, "/")
	if !ok {
		return &Place{Context: raw, Bucket: bucket}, nil
	}
	if name == "" || !bucketName.MatchString(own) {
		return nil, fault.New("give the name of a context, or NAME/BUCKET; the name of a bucket may have only letters, digits, - and _",
			"is neither NAME nor NAME/BUCKET")
	}
	return &Place{Context: name, Bucket: own}, nil
}

// String returns the place without credentials.
func (n *Place) String() string {
	if n.Context != "" {
		return fmt.Sprintf("context %s, bucket %s", fault.Shown(n.Context), n.Bucket)
	}
	if n.Migrating {
		return n.server() + "/" + n.Bucket + "?" + migrating
	}
	return n.server() + "/" + n.Bucket
}

// GoString is String.
func (n *Place) GoString() string { return n.String() }

// Name leaves out the bucket of a context.
func (n *Place) Name() string {
	if n.Context != "" {
		return fault.Shown(n.Context)
	}
	return n.String()
}

// Product returns NATS.
func (n *Place) Product() string { return "NATS" }

// Pushes returns true.
func (n *Place) Pushes() bool { return true }

// Limits returns those of every bucket.
func (n *Place) Limits() (driver.Bounded, error) { return natskv.FromKeyValue(nil), nil }

// server returns the URL of the servers without credentials.
func (n *Place) server() string {
	scheme, first, _ := strings.Cut(strings.Join(n.Servers, ","), "://")
	hosts := strings.ReplaceAll(first, scheme+"://", "")
	if n.User != "" || n.Token != "" {
		hosts = fault.Hidden + "@" + hosts
	}
	return scheme + "://" + hosts
}

// command returns the nats command with the options that reach the same servers.
func (n *Place) command() string {
	if n.Context != "" {
		return "nats --context " + fault.Shown(n.Context)
	}
	return "nats --server " + n.server()
}

// Commands returns those of the nats command.
func (n *Place) Commands(key string) kind.Commands {
	return kind.Commands{
		Look:   fmt.Sprintf("%s kv get %s %s", n.command(), n.Bucket, key),
		Delete: fmt.Sprintf("%s kv del %s %s", n.command(), n.Bucket, key),
	}
}

// The forms of a URL in hints.
const (
	examples   = "nats://host:4222/ELECTIONS, nats://user:password@host/ELECTIONS"
	exampleTLS = "tls://host/ELECTIONS"
	likeThis   = "give a URL such as " + examples + " or " + exampleTLS
)

// parse reads a URL of the form
// nats://[user:password@]host[:port][,host[:port]...]/BUCKET[?parameter[&parameter]], or with
// tls:// to insist on an encrypted connection.
func parse(raw string) (*Place, error) {
	u, err := url.Parse(raw)
	if err != nil { // left out, since it may quote a part of the password
		return nil, fault.New("write a port as a number, and special characters of a password as %XX; "+likeThis, "is not a valid URL")
	}
	given := strings.Split(u.RawQuery, "&")
	n := &Place{Migrating: slices.Contains(given, migrating), Pristine: slices.Contains(given, pristine)}
	if n.Servers, err = servers(u); err != nil {
		return nil, err
	}
	if n.Bucket, err = bucket(u); err != nil {
		return nil, err
	}
	n.credentials(u.User)
	return n, nil
}

// servers returns one URL for each host.
func servers(u *url.URL) ([]string, error) {
	if u.Host == "" {
		return nil, fault.New(likeThis, "names no host")
	}
	var all []string
	for host := range strings.SplitSeq(u.Host, ",") {
		if !kind.ValidHost(host) {
			return nil, fault.New(likeThis, "a host is empty, or a port is not a number from 1 to 65535")
		}
		all = append(all, u.Scheme+"://"+host)
	}
	return all, nil
}

// bucketName matches names that NATS accepts.
var bucketName = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

func bucket(u *url.URL) (string, error) {
	name := strings.TrimSuffix(strings.TrimPrefix(u.Path, "/"), "/")
	switch {
	case !known(u.RawQuery), u.Fragment != "":
		return "", fault.New(likeThis, "only ?%s and ?%s may follow the bucket; write ? and # of a password as %%3F and %%23",
			migrating, pristine)
	case name == "":
		return "", fault.New(likeThis, "names no bucket")
	case strings.Contains(name, "@"):
		return "", fault.New(likeThis, "has / before @; write / of a password as %%2F")
	case !bucketName.MatchString(name):
		return "", fault.New(likeThis, "the name of a bucket may have only letters, digits, - and _, and no / may follow it")
	}
	return name, nil
}

func known(query string) bool {
	for p := range strings.SplitSeq(query, "&") {
		if p != "" && p != migrating && p != pristine {
			return false
		}
	}
	return true
}

// credentials sets the user and the password; a user without a password is a token, as in NATS.
func (n *Place) credentials(u *url.Userinfo) {
	if u == nil {
		return
	}
	if password, ok := u.Password(); ok {
		n.User, n.Password = u.Username(), password
		return
	}
	n.Token = u.Username()
}

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
