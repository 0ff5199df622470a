package s3lect

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/netip"
	"strings"
	"sync/atomic"

	"github.com/tenure-go/tenure/driver"
)

// hostReader is the store below the peers of one election. It remembers the leader's host from the
// lockfile that was read last: the host that the peers dial.
type hostReader struct {
	driver.Store
	host atomic.Pointer[string]
}

// Abilities returns those of the store. It is polled, so its entries pass through Read.
func (h *hostReader) Abilities() driver.Abilities { return driver.AbilitiesOf(h.Store) }

func (h *hostReader) Read(ctx context.Context, key string) (driver.Entry, error) {
	e, err := h.Store.Read(ctx, key)
	if err == nil {
		host := ""
		if d, ok := parse(e.Value); ok {
			host = hostOf(d.fields.LeaderAddr)
		}
		h.host.Store(&host)
	}
	return e, err
}

func hostOf(address string) string {
	if host, _, err := net.SplitHostPort(address); err == nil {
		return host
	}
	return strings.Trim(address, "[]")
}

// leader returns the leader's host, empty if there is none.
func (h *hostReader) leader() string {
	if host := h.host.Load(); host != nil {
		return *host
	}
	return ""
}

// privateNetworks are loopback and the private networks of IPv4 and IPv6. Link-local addresses are
// not among them, because clouds serve credentials there to every process.
var privateNetworks = []netip.Prefix{
	netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128"), netip.MustParsePrefix("10.0.0.0/8"),
	netip.MustParsePrefix("172.16.0.0/12"), netip.MustParsePrefix("192.168.0.0/16"), netip.MustParsePrefix("fc00::/7"),
}

var (
	errNoCertificate = errors.New("s3lect: PeerCACert holds no certificate in PEM")
	errNoHost        = errors.New("s3lect: the host of the leader is not known, so its certificate cannot be checked")
)

// roots are the authorities that may sign a leader's certificate. Unlike those in a tls.Config,
// they can be changed while connections are made.
type roots struct{ pool atomic.Pointer[x509.CertPool] }

func (r *roots) set(pem []byte) error {
	pool, err := parseRoots(pem)
	if err == nil {
		r.pool.Store(pool)
	}
	return err
}

// parseRoots returns nil for empty input: then the authorities are those of the system.
func parseRoots(pem []byte) (*x509.CertPool, error) {
	if len(pem) == 0 {
		return nil, nil
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, errNoCertificate
	}
	return pool, nil
}

// client returns the configuration for dialing leaders. It switches the check of crypto/tls off and
// calls verify instead, for each connection, resumed ones too. If a leader is dialed by IP address,
// crypto/tls does not report that address, so the function leader returns it.
func (r *roots) client(leader func() string) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12, InsecureSkipVerify: true,
		VerifyConnection: func(cs tls.ConnectionState) error {
			host := cs.ServerName
			if host == "" {
				host = leader()
				if net.ParseIP(host) == nil {
					return errNoHost
				}
			}
			return r.verify(host, cs.PeerCertificates)
		},
	}
}

// verify makes the same check as crypto/tls: the certificate is signed by one of the authorities,
// valid now, and for this host.
func (r *roots) verify(host string, chain []*x509.Certificate) error {
	opts := x509.VerifyOptions{Roots: r.pool.Load(), DNSName: host, Intermediates: x509.NewCertPool()}
	for _, c := range chain[1:] {
		opts.Intermediates.AddCert(c)
	}
	_, err := chain[0].Verify(opts)
	return err
}
