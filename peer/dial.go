package peer

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"syscall"
	"time"
)

// dialler sends requests to leaders: directly, without proxies, redirects or cookies.
type dialler struct {
	transport *http.Transport
	scheme    string
	path      string
	life      context.Context // ends all dials at Close
	end       context.CancelFunc
}

func newDialler(cfg Config, certs *certificates) *dialler {
	d := &dialler{scheme: "http", path: cfg.Path}
	d.life, d.end = context.WithCancel(context.Background())
	plain := &net.Dialer{Timeout: cfg.Timeout, Control: within(cfg.Networks)}
	d.transport = &http.Transport{
		Proxy: nil,
		DialContext: func(_ context.Context, network, address string) (net.Conn, error) {
			return plain.DialContext(d.life, network, address)
		},
		TLSHandshakeTimeout:    cfg.Timeout,
		ResponseHeaderTimeout:  cfg.Timeout,
		MaxResponseHeaderBytes: 8 << 10,
		DisableCompression:     true,
		MaxIdleConnsPerHost:    1,
		IdleConnTimeout:        cfg.Retry,
		ForceAttemptHTTP2:      true,
		// With HTTP/2 many keys share one connection, so a dead connection must be detected even
		// while new requests come.
		HTTP2: &http.HTTP2Config{SendPingTimeout: cfg.Timeout, PingTimeout: cfg.Timeout},
	}
	switch {
	case cfg.ClientTLS == nil:
	case certs == nil:
		d.scheme, d.transport.TLSClientConfig = "https", cfg.ClientTLS.Clone()
	default:
		d.scheme = "https"
		d.transport.DialTLSContext = func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := d.transport.DialContext(ctx, network, address)
			if err != nil {
				return nil, err
			}
			return d.encrypt(conn, certs.client(ctx, address), cfg.Timeout)
		}
	}
	return d
}

// encrypt returns the connection after the handshake.
func (d *dialler) encrypt(conn net.Conn, with *tls.Config, within time.Duration) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(d.life, within)
	defer cancel()
	secure := tls.Client(conn, with)
	if err := secure.HandshakeContext(ctx); err != nil {
		_ = conn.Close()
		return nil, err
	}
	return secure, nil
}

// within refuses to connect to an address outside the networks. It checks the address that a name
// resolved to.
func within(networks []netip.Prefix) func(string, string, syscall.RawConn) error {
	return func(_, address string, _ syscall.RawConn) error {
		at, err := netip.ParseAddrPort(address)
		if err != nil {
			return err
		}
		ip := at.Addr().Unmap().WithZone("")
		for _, n := range networks {
			if n.Contains(ip) {
				return nil
			}
		}
		return fmt.Errorf("%v is outside the networks that may be dialed", ip)
	}
}

// request requests the stream of a leader. It uses only the transport, which follows no redirect.
func (d *dialler) request(ctx context.Context, address, key string, challenge []byte) (*http.Response, error) {
	u, err := d.url(address, key)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", eventStream)
	req.Header.Set(challengeHeader, text.EncodeToString(challenge))
	return d.transport.RoundTrip(req)
}

// url returns the URL of a leader. It accepts only a host, with or without a port.
func (d *dialler) url(address, key string) (*url.URL, error) {
	u, err := url.Parse(d.scheme + "://" + address)
	if err != nil || u.Host != address || u.Hostname() == "" || strings.HasSuffix(address, ":") || u.User != nil {
		return nil, errors.New("the address is not a host and a port")
	}
	u.Path, u.RawQuery = d.path, url.Values{"election": {key}}.Encode()
	return u, nil
}

func (d *dialler) close() {
	d.end()
	d.transport.CloseIdleConnections()
}
