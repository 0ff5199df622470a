package s3lect

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/netip"
	"sync/atomic"
)

// near is loopback and the private networks of IPv4 and IPv6. Link-local addresses are not among
// them, because clouds serve credentials there to every process.
var near = []netip.Prefix{
	netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128"), netip.MustParsePrefix("10.0.0.0/8"),
	netip.MustParsePrefix("172.16.0.0/12"), netip.MustParsePrefix("192.168.0.0/16"), netip.MustParsePrefix("fc00::/7"),
}

var (
	errNoCertificate = errors.New("s3lect: PeerCACert holds no certificate in PEM")
	errNoHost        = errors.New("s3lect: it is not known whose certificate to expect")
)

// roots are the authorities that a leader's certificate must be of. They can be changed while
// connections are made, which those in a tls.Config cannot.
type roots struct{ pool atomic.Pointer[x509.CertPool] }

func (r *roots) check(pem []byte) error {
	_, err := parseRoots(pem)
	return err
}

func (r *roots) set(pem []byte) error {
	pool, err := parseRoots(pem)
	if err == nil {
		r.pool.Store(pool)
	}
	return err
}

// parseRoots returns nil, which means the system's, for nothing.
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

// client is the configuration for dialing leaders. Verify makes the check that is switched off;
// crypto/tls calls it for each connection, resumed ones too. For a leader that is dialed by IP
// address crypto/tls does not pass the address to verify, so it comes from leader.
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

// verify makes the same check as crypto/tls: that the certificate is of the authorities, in its
// time, and for this host.
func (r *roots) verify(host string, chain []*x509.Certificate) error {
	opts := x509.VerifyOptions{Roots: r.pool.Load(), DNSName: host, Intermediates: x509.NewCertPool()}
	for _, c := range chain[1:] {
		opts.Intermediates.AddCert(c)
	}
	_, err := chain[0].Verify(opts)
	return err
}
