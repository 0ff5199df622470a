package peer

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"

	"github.com/tenure-go/tenure/driver/reread"
)

// LoadTLS makes both ends of TLS from PEM files, for Config.ServerTLS and Config.ClientTLS. Each
// end accepts only certificates of the authorities in caFile, and shows the one in certFile with
// the key in keyFile. The server refuses clients without a certificate. Both ends use the same
// certificate, so it must be valid for a server and a client, and name the host in the leader's
// address. If certFile and keyFile are empty, server is nil, and client follows leaders that ask
// for no certificate. The version is TLS 1.3, or 1.2 with peers that do not support 1.3. LoadTLS
// reads the files once; call it in Config.TLS to read them for each connection.
//
// It returns an error that names the file if one cannot be read, if the key does not fit the
// certificate, and if the other members could not accept the certificate: it is of another
// authority, expired or not yet valid, or not for both ends.
func LoadTLS(caFile, certFile, keyFile string) (server, client *tls.Config, err error) {
	roots, err := loadRoots(caFile)
	if err != nil {
		return nil, nil, err
	}
	client = &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots}
	if certFile == "" && keyFile == "" {
		return nil, client, nil
	}
	pair, err := loadPair(roots, certFile, keyFile)
	if err != nil {
		return nil, nil, err
	}
	client.Certificates = []tls.Certificate{pair}
	server = &tls.Config{
		MinVersion:   tls.VersionTLS12,
		Certificates: []tls.Certificate{pair},
		ClientAuth:   tls.RequireAndVerifyClientCert,
		ClientCAs:    roots,
	}
	return server, client, nil
}

func loadRoots(file string) (*x509.CertPool, error) {
	pem, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("peer: authorities: %w", err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("peer: authorities: %s holds no certificate in PEM", file)
	}
	return roots, nil
}

func loadPair(roots *x509.CertPool, certFile, keyFile string) (tls.Certificate, error) {
	if certFile == "" || keyFile == "" {
		return tls.Certificate{}, errors.New("peer: a certificate and its key go together; one is missing")
	}
	pair, err := tls.LoadX509KeyPair(certFile, keyFile)
	if err != nil {
		return pair, fmt.Errorf("peer: certificate %s with key %s: %w", certFile, keyFile, err)
	}
	intermediates := x509.NewCertPool()
	for _, der := range pair.Certificate[1:] {
		if c, err := x509.ParseCertificate(der); err == nil {
			intermediates.AddCert(c)
		}
	}
	for _, end := range []struct {
		name  string
		usage x509.ExtKeyUsage
	}{{"server", x509.ExtKeyUsageServerAuth}, {"client", x509.ExtKeyUsageClientAuth}} {
		_, err := pair.Leaf.Verify(x509.VerifyOptions{
			Roots: roots, Intermediates: intermediates, KeyUsages: []x509.ExtKeyUsage{end.usage},
		})
		if err != nil {
			return pair, fmt.Errorf("peer: certificate %s is not good for a %s: %w", certFile, end.name, err)
		}
	}
	return pair, nil
}

// ErrCertificates reports that Config.TLS has returned an error, so that the last certificates and
// authorities stay in use.
var ErrCertificates = errors.New("the certificates cannot be read again, so the last ones stay in use")

var errOtherEnds = errors.New("TLS is turned on or off, which needs a restart")

// ends are the configurations of both ends.
type ends struct{ server, client *tls.Config }

// certificates follow Config.TLS.
type certificates struct{ source *reread.Source[ends] }

// newCertificates returns nil unless Config.TLS is set. It sets the configurations that stand for
// all later ones where only their presence counts.
func newCertificates(cfg *Config) (*certificates, error) {
	if cfg.TLS == nil {
		return nil, nil
	}
	var err error
	if cfg.ServerTLS, cfg.ClientTLS, err = cfg.TLS(); err != nil {
		return nil, err
	}
	first := ends{cfg.ServerTLS, cfg.ClientTLS}
	load, tell := cfg.TLS, cfg.OnError
	read := func(context.Context) (ends, error) {
		server, client, err := load()
		if err == nil && ((server == nil) != (first.server == nil) || (client == nil) != (first.client == nil)) {
			err = errOtherEnds
		}
		return ends{server, client}, err
	}
	report := func(err error) {
		tell("", fmt.Errorf("peer: %w: %w", ErrCertificates, err))
	}
	return &certificates{reread.New(first, read, report)}, nil
}

// server is tls.Config.GetConfigForClient.
func (c *certificates) server(hello *tls.ClientHelloInfo) (*tls.Config, error) {
	return withProtocols(c.source.Get(hello.Context()).server), nil
}

// client returns the configuration for a connection to an address. RootCAs of a configuration
// cannot change, and tls.Config.VerifyConnection does not know hosts that are addresses, so each
// connection has a configuration of its own.
func (c *certificates) client(ctx context.Context, address string) *tls.Config {
	own := withProtocols(c.source.Get(ctx).client)
	if own.ServerName == "" {
		// It never fails, because the transport has added the port.
		own.ServerName, _, _ = net.SplitHostPort(address)
	}
	return own
}

// withProtocols returns a copy with the protocols that package http would set.
func withProtocols(c *tls.Config) *tls.Config {
	c = c.Clone()
	if len(c.NextProtos) == 0 {
		c.NextProtos = []string{"h2", "http/1.1"}
	}
	return c
}
