//go:build integration

package sqltable

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/tenure-go/tenure/cmd/internal/stores/kind"
	"github.com/tenure-go/tenure/cmd/internal/test/must"
	"github.com/tenure-go/tenure/cmd/internal/test/program"
)

// TestPoolRecoversFromHungConnections: a server accepts connections and never answers, as behind a
// frozen host. database/sql then opens connections for calls that have long given up. These must
// not hold all places of the pool when the server answers again.
func TestPoolRecoversFromHungConnections(t *testing.T) {
	for scheme, refuse := range map[string]func(net.Conn){"postgres": refusePostgres, "mysql": refuseMySQL} {
		t.Run(scheme, func(t *testing.T) {
			t.Parallel()
			hangs(t, scheme+"://u@HOST/db"+map[string]string{"postgres": "?push=off&sslmode=disable", "mysql": "?tls=false"}[scheme], refuse)
		})
	}
}

func hangs(t *testing.T, store string, refuse func(net.Conn)) {
	t.Helper()
	var answers atomic.Bool
	taken := make(chan struct{}, 100)
	address := program.Serve(t, func(c net.Conn) {
		if answers.Load() {
			refuse(c)
			return
		}
		t.Cleanup(func() { _ = c.Close() })
		taken <- struct{}{}
	})
	scheme, _, _ := strings.Cut(store, ":")
	p, err := parse(scheme, strings.ReplaceAll(store, "HOST", address))
	must.OK(t, err)
	s, err := p.Open(t.Context(), kind.Options{})
	must.OK(t, err)
	t.Cleanup(func() { _ = s.Close() })
	read := func(within time.Duration) error {
		ctx, cancel := context.WithTimeout(t.Context(), within)
		defer cancel()
		_, err := s.Driver.Read(ctx, "billing")
		return err
	}
	var calls sync.WaitGroup
	for range 4 { // one opens a connection, and all give up
		calls.Go(func() { _ = read(200 * time.Millisecond) })
	}
	<-taken
	for range 8 {
		calls.Go(func() { _ = read(400 * time.Millisecond) })
	}
	calls.Wait()
	answers.Store(true)
	for err := errors.New("none"); !strings.Contains(err.Error(), "the server answers"); {
		err = read(time.Second)
	}
}

// refuseMySQL answers like a server with too many connections.
func refuseMySQL(c net.Conn) {
	defer func() { _ = c.Close() }()
	message := "\xff\x10\x04#08004the server answers"
	_, _ = c.Write(append([]byte{byte(len(message)), 0, 0, 0}, message...))
}

// refusePostgres answers like a server that accepts no connection.
func refusePostgres(c net.Conn) {
	defer func() { _ = c.Close() }()
	b := pgproto3.NewBackend(c, c)
	if _, err := b.ReceiveStartupMessage(); err == nil {
		b.Send(&pgproto3.ErrorResponse{Severity: "FATAL", Code: "28000", Message: "the server answers"})
		_ = b.Flush()
	}
}
