// Package servers starts servers of every store within the test's process.
package servers

import (
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/tenure-go/tenure/internal/test/wait"
	"github.com/twmb/franz-go/pkg/kfake"
)

// NATS starts a server with JetStream.
func NATS(t *testing.T, users ...*server.User) *server.Server {
	t.Helper()
	return JetStream(t, &server.Options{Users: users})
}

// JetStream adds the options that JetStream needs, and starts a server.
func JetStream(t *testing.T, o *server.Options) *server.Server {
	t.Helper()
	o.Host, o.Port, o.JetStream, o.StoreDir = "127.0.0.1", server.RANDOM_PORT, true, t.TempDir()
	return Start(t, o)
}

// Start starts a server with these options.
func Start(t *testing.T, o *server.Options) *server.Server {
	t.Helper()
	o.NoLog, o.NoSigs = true, true
	s, err := server.NewServer(o)
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() {
		s.Shutdown()
		s.WaitForShutdown()
	})
	wait.Until(t, "the server starts", func() bool { return s.ReadyForConnections(time.Second) })
	return s
}

// DeleteKey does the same as "nats kv del".
func DeleteKey(t *testing.T, url, bucket, key string) {
	t.Helper()
	nc, err := nats.Connect(url)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	ctx := wait.Context(t)
	kv, err := js.KeyValue(ctx, bucket)
	if err == nil {
		err = kv.Delete(ctx, key)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// Kafka starts three brokers, and returns how a URL names them.
func Kafka(t *testing.T, opts ...kfake.Opt) string {
	t.Helper()
	c, err := kfake.NewCluster(append([]kfake.Opt{kfake.NumBrokers(3), kfake.GroupMinSessionTimeout(time.Second)}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return strings.Join(c.ListenAddrs(), ",")
}
