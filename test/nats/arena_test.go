//go:build integration

package nats

import (
	"context"
	"crypto/rand"
	"flag"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/tenure-go/tenure/driver/natskv"
	"github.com/tenure-go/tenure/internal/test/wait"
	"github.com/tenure-go/tenure/test/internal/natsd"
)

func TestMain(m *testing.M) {
	flag.Parse()
	natsd.Tests(m)
}

// soak skips a test in the short pass over the servers.
func soak(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("the soak does it")
	}
}

// arena is a cluster and a replicated bucket of the test.
type arena struct {
	*natsd.Cluster
	tb     testing.TB
	js     jetstream.JetStream // the operator's
	bucket string
}

func newArena(t testing.TB) *arena {
	t.Helper()
	a := &arena{Cluster: natsd.Shared(t), tb: t, bucket: "B" + rand.Text()[:12]}
	a.js = a.connect(0)
	a.eventually("a bucket", func(ctx context.Context) error {
		_, err := a.js.CreateKeyValue(ctx, jetstream.KeyValueConfig{Bucket: a.bucket, History: 1, Storage: jetstream.FileStorage, Replicas: natsd.Members})
		return err
	})
	a.whole()
	return a
}

func (a *arena) must(err error) {
	a.tb.Helper()
	if err != nil {
		a.tb.Fatal(err)
	}
}

func (a *arena) context() context.Context { return wait.Context(a.tb) }

// eventually tries until it works, for a second each time.
func (a *arena) eventually(what string, try func(context.Context) error) {
	a.tb.Helper()
	wait.Succeeds(a.tb, what, func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		return try(ctx)
	})
}

func (a *arena) stream() string { return "KV_" + a.bucket }

// leader returns the server that leads the bucket's stream.
func (a *arena) leader() *natsd.Server {
	a.tb.Helper()
	s, err := a.Leader(a.context(), a.stream())
	a.must(err)
	return s
}

// whole waits until no copy of the bucket is behind.
func (a *arena) whole() {
	a.tb.Helper()
	a.must(a.Whole(a.context(), a.stream()))
}

// urls returns the URLs of all servers, a given one first.
func (a *arena) urls(first int) string {
	all := a.URLs()
	first %= len(all)
	return strings.Join(append(all[first:], all[:first]...), ",")
}

// connect connects like a program that has nothing to do with elections, first to one of the
// servers.
func (a *arena) connect(first int) jetstream.JetStream {
	a.tb.Helper()
	return a.dial(a.urls(first))
}

func (a *arena) dial(urls string, opts ...nats.Option) jetstream.JetStream {
	a.tb.Helper()
	nc, err := nats.Connect(urls, append(opts, nats.DontRandomize(), nats.MaxReconnects(-1), nats.ReconnectWait(50*time.Millisecond),
		nats.Timeout(time.Second), nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}))...)
	a.must(err)
	a.tb.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	a.must(err)
	return js
}

// open opens the bucket over an own connection, first to one of the servers.
func (a *arena) open(first int) *natskv.Store {
	a.tb.Helper()
	return a.openOver(a.connect(first), natskv.OwnConnection())
}

func (a *arena) openOver(js jetstream.JetStream, opts ...natskv.Option) *natskv.Store {
	a.tb.Helper()
	s, err := natskv.Open(a.context(), js, a.bucket, append(opts, natskv.Pristine())...)
	a.must(err)
	a.tb.Cleanup(func() { a.must(s.Close()) })
	return s
}

// roll restarts all servers gracefully, one after another, each when no copy is behind.
func (a *arena) roll() {
	a.tb.Helper()
	for _, s := range a.Servers {
		a.must(s.Stop())
		a.must(s.Start())
		a.whole()
	}
}
