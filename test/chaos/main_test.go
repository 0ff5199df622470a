//go:build integration

package chaos

import (
	"context"
	"crypto/rand"
	"flag"
	"os"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/tenure-go/tenure/driver/natskv"
	"github.com/tenure-go/tenure/internal/test/wait"
	"github.com/tenure-go/tenure/test/internal/natsd"
	"github.com/tenure-go/tenure/test/internal/relay"
)

// TestMain lets more tests run in parallel than there are processors, because the tests mostly
// wait.
func TestMain(m *testing.M) {
	natsd.Main()
	if err := flag.Set("test.parallel", "10"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func startServer(t testing.TB) *natsd.Server {
	t.Helper()
	s, err := natsd.Start(t.TempDir())
	must(t, err)
	t.Cleanup(s.Kill)
	return s
}

func startRelay(t testing.TB, s *natsd.Server) *relay.Relay {
	t.Helper()
	r, err := relay.New(s.URL())
	must(t, err)
	t.Cleanup(r.Close)
	return r
}

// connect returns a connection that reconnects soon.
func connect(t testing.TB, url string, opts ...nats.Option) jetstream.JetStream {
	t.Helper()
	opts = append([]nats.Option{
		nats.MaxReconnects(-1), nats.ReconnectWait(20 * time.Millisecond), nats.Timeout(time.Second),
		nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}),
	}, opts...)
	var nc *nats.Conn
	// A busy machine may take longer than the time-out, which is meant for reconnects.
	wait.Succeeds(t, "connect", func(context.Context) (err error) {
		nc, err = nats.Connect(url, opts...)
		return err
	})
	t.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	must(t, err)
	return js
}

// addBucket creates a bucket as an operator does.
func addBucket(t testing.TB, js jetstream.JetStream, change ...func(*jetstream.KeyValueConfig)) jetstream.KeyValue {
	t.Helper()
	c := jetstream.KeyValueConfig{Bucket: "B" + rand.Text()[:12], History: 1, Storage: jetstream.FileStorage}
	for _, ch := range change {
		ch(&c)
	}
	kv, err := js.CreateKeyValue(wait.Context(t), c)
	must(t, err)
	return kv
}

func openStore(t testing.TB, js jetstream.JetStream, bucket string, opts ...natskv.Option) *natskv.Store {
	t.Helper()
	s, err := natskv.Open(wait.Context(t), js, bucket, opts...)
	must(t, err)
	t.Cleanup(func() { must(t, s.Close()) })
	return s
}
