package natsbucket

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/tenure-go/tenure/driver/reread"
)

var (
	errContextMoved = errors.New("the context names other servers now, or another kind of TLS; start this process again to use it")
	errNoLogin      = errors.New("the context holds no credentials any more; put the present ones there")
	errNKey         = errors.New("the context has another NKey now; start this process again to use it")
)

// askEvery is the least time between two reads of a context whose credentials come from a command.
const askEvery = time.Minute

// natsLogin gives the client of a context what the context's files hold now. Each dial reads them
// again, so that one attempt to connect uses one version of them.
type natsLogin struct {
	source *reread.Source[*nats.Options]
	every  time.Duration // the least time between two reads

	mu  sync.Mutex
	now *nats.Options
	at  time.Time // of the last read
}

// newLogin returns the login of a context that was just read.
func newLogin(name string, first target, stale func(error)) (*natsLogin, error) {
	set, err := applied(first.options)
	if err != nil {
		return nil, err
	}
	read := func(context.Context) (*nats.Options, error) {
		t, err := readTarget(name)
		if err != nil {
			return nil, err
		}
		now, err := applied(t.options)
		switch {
		case err != nil:
			return nil, err
		case t.url != first.url || t.domain != first.domain || t.prefix != first.prefix:
			return nil, errContextMoved
		case (now.TLSCertCB == nil) != (set.TLSCertCB == nil), (now.RootCAsCB == nil) != (set.RootCAsCB == nil):
			return nil, errContextMoved
		case anonymous(now) && !anonymous(set):
			return nil, errNoLogin
		case now.Nkey != set.Nkey: // the library takes it once
			return nil, errNKey
		}
		return now, nil
	}
	l := &natsLogin{source: reread.New(set, read, stale), now: set, at: time.Now()}
	if first.asks {
		l.every = askEvery
	}
	return l, nil
}

func anonymous(o *nats.Options) bool {
	return o.User == "" && o.Token == "" && o.UserJWT == nil && o.Nkey == ""
}

// applied returns what the options set. It returns an error if credentials are incomplete, such as
// those of a file that is half-written.
func applied(options []nats.Option) (*nats.Options, error) {
	o := new(nats.Options)
	for _, set := range options {
		if err := set(o); err != nil {
			return nil, err
		}
	}
	if o.UserJWT != nil {
		if _, err := o.UserJWT(); err != nil {
			return nil, err
		}
	}
	if o.SignatureCB != nil {
		if _, err := o.SignatureCB([]byte("nonce")); err != nil {
			return nil, err
		}
	}
	return o, nil
}

// refresh reads the files.
func (l *natsLogin) refresh() {
	l.mu.Lock()
	due := time.Since(l.at) >= l.every
	if due {
		l.at = time.Now()
	}
	l.mu.Unlock()
	if !due {
		return
	}
	now := l.source.Get(context.Background())
	l.mu.Lock()
	defer l.mu.Unlock()
	l.now = now
}

func (l *natsLogin) current() *nats.Options {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.now
}

// follow replaces the credentials in the options of a client by functions that return the present
// ones. It comes after all other options.
func (l *natsLogin) follow(o *nats.Options) error {
	o.CustomDialer = rereadingDialer{o.CustomDialer, l}
	o.User, o.Password, o.Token = "", "", ""
	o.UserInfo = func() (user, password string) { now := l.current(); return now.User, now.Password }
	if !strings.Contains(strings.Join(o.Servers, ","), "@") { // the library refuses two tokens
		o.TokenHandler = func() string { return l.current().Token }
	}
	if o.Nkey == "" {
		o.UserJWT = l.jwt
	}
	o.SignatureCB = l.sign
	if o.TLSCertCB != nil {
		o.TLSCertCB = func() (tls.Certificate, error) { return l.current().TLSCertCB() }
	}
	if o.RootCAsCB != nil {
		o.RootCAsCB = func() (*x509.CertPool, error) { return l.current().RootCAsCB() }
	}
	return nil
}

func (l *natsLogin) jwt() (string, error) {
	if now := l.current(); now.UserJWT != nil {
		return now.UserJWT()
	}
	return "", nil
}

func (l *natsLogin) sign(nonce []byte) ([]byte, error) {
	if now := l.current(); now.SignatureCB != nil {
		return now.SignatureCB(nonce)
	}
	return nil, nil
}

// rereadingDialer reads the files before it dials.
type rereadingDialer struct {
	nats.CustomDialer
	login *natsLogin
}

// Dial connects.
func (d rereadingDialer) Dial(network, address string) (net.Conn, error) {
	d.login.refresh()
	return d.CustomDialer.Dial(network, address)
}

// dialTimeout is how long connecting to one server may take.
const dialTimeout = 2 * time.Second

// keepRefusals makes the client report a refusal in the words of the server. A server that refuses
// a client sends the reason and hangs up, at times before the client has sent its whole greeting.
// The library would then return the failed write, and not read the reason.
func keepRefusals(o *nats.Options) error {
	if o.Dialer == nil && o.CustomDialer == nil { // the proxy of a context
		o.CustomDialer = dialer{net.Dialer{Timeout: dialTimeout}}
		o.SkipHostLookup = true // net.Dialer divides the timeout among the addresses of a name
	}
	return nil
}

type dialer struct{ net.Dialer }

// Dial returns a connection whose first writes do not fail.
func (d dialer) Dial(network, address string) (net.Conn, error) {
	c, err := d.Dialer.Dial(network, address)
	if err != nil {
		return nil, err
	}
	return &greeting{Conn: c}, nil
}

// firstWrites are enough for TLS and the library's greeting.
const firstWrites = 8

// greeting is a connection that hides an error of its first writes, and sends nothing after it. The
// read that follows returns the reason of the server, if it sent one, and then fails as well.
type greeting struct {
	net.Conn
	writes atomic.Int32
	failed atomic.Pointer[error] // of the first writes
}

// Write returns no error of the first writes, unless it is a timeout.
func (g *greeting) Write(b []byte) (int, error) {
	first := g.writes.Load() < firstWrites && g.writes.Add(1) <= firstWrites
	failed := g.failed.Load()
	switch {
	case failed != nil && first:
		return len(b), nil
	case failed != nil:
		return 0, *failed
	}
	n, err := g.Conn.Write(b)
	if err != nil && first && !errors.Is(err, os.ErrDeadlineExceeded) {
		g.failed.Store(&err)
		return len(b), nil
	}
	return n, err
}
