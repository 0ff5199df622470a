package etcdkv

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/tenure-go/tenure/driver"
)

// refusedWithin is how long a server may take to refuse a certificate.
const refusedWithin = time.Second

// explain returns an error of a call as the contract of package driver wants it. A server that
// refuses a certificate closes the connection, and the client library reports only that. So while
// the store has had no answer, and therefore has sent no write, it connects once more to find out.
func (s *Store) explain(ctx context.Context, err error) error {
	if err == nil || s.tls == nil || ctx.Err() != nil || s.past.now().known() {
		return explain(ctx, err)
	}
	if refused := s.refusal(ctx); refused != nil {
		return fmt.Errorf("%w: %w: %w", driver.ErrDenied, ErrRefusedTLS, refused)
	}
	return explain(ctx, err)
}

// refusal returns the error by which a server refuses the certificate; nil: none does. It asks all,
// since the error that it explains does not name its server.
func (s *Store) refusal(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, refusedWithin)
	defer cancel()
	endpoints := s.client.Endpoints()
	refusals := make([]error, len(endpoints))
	var asking sync.WaitGroup
	for i, endpoint := range endpoints {
		asking.Go(func() { refusals[i] = s.refusalBy(ctx, endpoint) })
	}
	asking.Wait()
	return cmp.Or(refusals...)
}

func (s *Store) refusalBy(ctx context.Context, endpoint string) error {
	u, err := url.Parse(endpoint)
	if err != nil {
		return nil
	}
	config := s.tls.Clone()
	config.NextProtos = []string{"h2"}
	conn, err := (&tls.Dialer{Config: config}).DialContext(ctx, "tcp", u.Host)
	if err == nil {
		defer func() { _ = conn.Close() }()
		defer context.AfterFunc(ctx, func() { _ = conn.SetReadDeadline(time.Now()) })()
		_, err = conn.Read(make([]byte, 1)) // with TLS 1.3 the refusal comes after the handshake
	}
	if err != nil && strings.Contains(err.Error(), alert) {
		return fmt.Errorf("%s: %w", u.Host, err)
	}
	return nil
}
