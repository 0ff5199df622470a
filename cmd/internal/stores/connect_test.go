//go:build integration

package stores_test

import (
	"net"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/tenure-go/tenure/cmd/internal/fault"
	"github.com/tenure-go/tenure/cmd/internal/stores"
	"github.com/tenure-go/tenure/cmd/internal/test/places"
	"github.com/tenure-go/tenure/cmd/internal/test/servers"
	"github.com/tenure-go/tenure/internal/test/wait"
	"github.com/twmb/franz-go/pkg/kfake"
)

// freePort returns a port without a listener.
func freePort(t *testing.T) *net.TCPAddr {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().(*net.TCPAddr)
}

// await connects with no time limit and starts the server at the first failure. It returns the
// number of reported failures.
func await(t *testing.T, url string, start func()) int {
	t.Helper()
	failures := 0
	s, err := stores.Connect(wait.Context(t), places.Parse(t, url), "key", stores.Options{Create: true}, stores.Patience{
		Limit: stores.Forever, Told: func(err error) {
			if failures++; failures == 1 {
				start()
			}
			if !fault.Passes(err) {
				t.Errorf("waits after %v", err)
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	return failures
}

func TestConnectWaitsForUnreachableServers(t *testing.T) {
	t.Parallel()
	t.Run("NATS", func(t *testing.T) {
		t.Parallel()
		at := freePort(t)
		if await(t, "nats://"+at.String()+"/E", func() {
			servers.Start(t, &server.Options{Host: "127.0.0.1", Port: at.Port, JetStream: true, StoreDir: t.TempDir()})
		}) == 0 {
			t.Error("no failure is reported")
		}
	})
	t.Run("Kafka", func(t *testing.T) {
		t.Parallel()
		at := freePort(t)
		if await(t, "kafka://"+at.String()+"/t", func() { servers.Kafka(t, kfake.Ports(at.Port), kfake.NumBrokers(1)) }) == 0 {
			t.Error("no failure is reported")
		}
	})
}
