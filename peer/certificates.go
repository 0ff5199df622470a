package peer

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"

	"github.com/tenure-go/tenure/driver/reread"
)

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
