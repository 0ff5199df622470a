//go:build integration

package stores_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/tenure-go/tenure/cmd/internal/fault"
	"github.com/tenure-go/tenure/cmd/internal/stores"
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

// settles tries until it succeeds, fails with the wanted error, or fails with a permanent error. On
// a slow machine a server may answer too late.
func settles[T any](t *testing.T, want string, try func(ctx context.Context) (T, error)) (T, error) {
	t.Helper()
	for ctx := wait.Context(t); ; {
		got, err := try(ctx)
		if err == nil || !fault.Passes(err) || want != "" && strings.Contains(err.Error(), want) || ctx.Err() != nil {
			return got, err
		}
	}
}

// await connects with no time limit and starts the server at the first failure. It returns the
// number of reported failures.
func await(t *testing.T, url string, start func()) int {
	t.Helper()
	failures := 0
	s, err := stores.Connect(wait.Context(t), parse(t, url), "key", stores.Options{Create: true}, stores.Patience{
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
			startServer(t, &server.Options{Host: "127.0.0.1", Port: at.Port, JetStream: true, StoreDir: t.TempDir()})
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

func TestConnectReturnsPermanentErrorsAtOnce(t *testing.T) {
	bareEnvironment(t)
	host := withAccounts(t)
	for _, url := range []string{
		"nats://" + host + "/E",
		"nats://all:wrong@" + host + "/E",
		"nats://mute:s3cret@" + host + "/E",
		"nats://all:s3cret@" + host + "/E",
		"tls://" + host + "/E",
		"s3://bucket?region=r&endpoint=" + refusing(t, 404, "NoSuchBucket"),
		"s3://bucket?region=r&endpoint=" + refusing(t, 403, "AccessDenied"),
		"s3://bucket?region=r&endpoint=" + withTLS(t),
		"kafka://" + servers.Kafka(t) + "/t",
		"kafka://all:wrong@" + withUsers(t) + "/t",
	} {
		ctx, cancel := context.WithCancel(wait.Context(t))
		var failures []error
		_, err := stores.Connect(ctx, parse(t, url), "key", stores.Options{}, stores.Patience{
			Limit: stores.Forever, Told: func(err error) {
				// On a slow machine an attempt may take too long.
				if failures = append(failures, err); len(failures) == 20 {
					cancel()
				}
			},
		})
		if cancel(); err == nil || fault.Passes(err) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: got %v, after these failures: %v", stores.Redact(url), err, failures)
		}
	}
}
