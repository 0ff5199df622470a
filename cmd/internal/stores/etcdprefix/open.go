package etcdprefix

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"os"
	"strings"
	"sync/atomic"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/status"

	"github.com/tenure-go/tenure/cmd/internal/fault"
	"github.com/tenure-go/tenure/cmd/internal/stores/kind"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/etcdkv"
	"github.com/tenure-go/tenure/driver/reread"
)

// Open connects with the settings that elections need. Without a user it sends nothing yet.
func (e *Place) Open(ctx context.Context, o kind.Options) (*kind.Opened, error) {
	seen := &connections{told: o.OnConnection}
	config := clientv3.Config{
		Context: context.WithoutCancel(ctx), Endpoints: e.endpoints(),
		DialOptions: []grpc.DialOption{grpc.WithStatsHandler(seen), grpc.WithUserAgent(o.Client)},
	}
	err := e.logIn(&config, o.Stale)
	if err != nil {
		return nil, fault.OfValue(err)
	}
	if e.Secure {
		if config.TLS, err = e.certificates(o.Stale); err != nil {
			return nil, fault.OfValue(fault.New("tls-ca, tls-cert and tls-key name files in PEM; the last two go together", "parameter %w", err))
		}
	}
	store, err := etcdkv.Open(config, "/"+e.Prefix+"/")
	if err != nil {
		return nil, e.Explain(err)
	}
	return &kind.Opened{Driver: store, Close: func() error {
		seen.closed.Store(true)
		return store.Close()
	}}, nil
}

// logIn sets the user and the password. That in a file is read again for each login.
func (e *Place) logIn(config *clientv3.Config, stale func(error)) error {
	if e.User == "" {
		return nil
	}
	config.Username, config.Password = e.User, cmp.Or(e.Password, os.Getenv(passwordVariable))
	if e.PasswordFile != "" {
		source, err := kind.PasswordOf(e.PasswordFile, stale)
		if err != nil {
			return fault.New(kind.PasswordHint, "%s: %w", passwordFile, err)
		}
		config.Password = source.Get(context.Background())
		config.DialOptions = append(config.DialOptions, etcdkv.WithPassword(source.Get))
	}
	if config.Password == "" {
		return fault.New("give it in "+passwordFile+"=FILE, before the host, or in "+passwordVariable, "has a user and no password")
	}
	return nil
}

// certificates returns the settings of TLS. The certificate of the client is read again for each
// connection.
func (e *Place) certificates(stale func(error)) (*tls.Config, error) {
	c, err := kind.TLSOfFiles(tlsPrefix, e.CA, e.Cert, e.Key)
	if err != nil || len(c.Certificates) == 0 {
		return c, err
	}
	pair := reread.New(&c.Certificates[0], func(context.Context) (*tls.Certificate, error) {
		again, err := tls.LoadX509KeyPair(e.Cert, e.Key)
		return &again, err
	}, stale)
	c.GetClientCertificate = func(request *tls.CertificateRequestInfo) (*tls.Certificate, error) {
		return pair.Get(request.Context()), nil
	}
	return c, nil
}

// connections reports that the last connection is lost, and that there is one again. A check of
// single servers has connections of its own, which come and go beside the others.
type connections struct {
	told   func(up bool, err error)
	closed atomic.Bool
	open   atomic.Int64
	lost   atomic.Bool
}

// HandleConn is called when a connection begins or ends.
func (c *connections) HandleConn(_ context.Context, s stats.ConnStats) {
	var up, changed bool
	switch s.(type) {
	case *stats.ConnEnd:
		changed = c.open.Add(-1) == 0 && !c.lost.Swap(true)
	case *stats.ConnBegin:
		c.open.Add(1)
		up, changed = true, c.lost.Swap(false)
	}
	if changed && c.told != nil && !c.closed.Load() {
		c.told(up, nil)
	}
}

// TagConn returns the context.
func (c *connections) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }

// TagRPC returns the context.
func (c *connections) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context { return ctx }

// HandleRPC does nothing.
func (c *connections) HandleRPC(context.Context, stats.RPCStats) {}

// Explain returns the error and the hint for a cluster that cannot be used.
func (e *Place) Explain(err error) *fault.Error {
	says := func(text string) bool { return strings.Contains(err.Error(), text) }
	switch {
	case errors.Is(err, etcdkv.ErrRefusedTLS):
		return fault.New("give a certificate in tls-cert and its key in tls-key, for example "+exampleSecure+"&tls-cert=client.pem&tls-key=client-key.pem", "%w", err)
	case errors.Is(err, etcdkv.ErrNoUser), errors.Is(err, etcdkv.ErrLogin):
		return fault.New("give a URL such as "+e.scheme()+"://user:password@host/"+e.Prefix+", or the user there and the password in "+passwordFile+"=FILE or "+passwordVariable, "%w", err)
	case errors.Is(err, driver.ErrDenied): // the error says what is missing
		return fault.New("a candidate needs: etcdctl role grant-permission ROLE readwrite /"+e.Prefix+"/ --prefix; an observer needs read", "%w", err)
	case errors.Is(err, etcdkv.ErrFull), errors.Is(err, etcdkv.ErrLearner):
		return fault.New("", "%w", err)
	case says("x509: certificate signed by unknown authority"), says("x509: certificate is valid for"), says("x509: cannot validate certificate"):
		return fault.New("give the authority of the servers in tls-ca, and hosts by the names in their certificates", "%w", err)
	case says("x509: certificate has expired"):
		return fault.New("renew the certificate of the server, or set the clock of this machine", "%w", err)
	case says("first record does not look like a TLS handshake"), says("authentication handshake failed: EOF"):
		return fault.New("if the server has no TLS, give etcd:// instead of etcds://", "%w", err)
	case says("error reading server preface"):
		return fault.Passing("if the server has TLS, give etcds:// instead of etcd://", "%w", err)
	}
	f := fault.New("check the hosts and ports, and that most members run: etcdctl --endpoints="+
		strings.Join(e.endpoints(), ",")+" endpoint health", "%w", err)
	f.Passing = kind.Away(err) || errors.Is(err, etcdkv.ErrNoQuorum) || status.Code(err) == codes.Unavailable
	return f
}
