// Package servers starts servers of every store within the test's process.
package servers

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/tenure-go/tenure/cmd/internal/test/must"
	"github.com/tenure-go/tenure/internal/test/ports"
	"github.com/tenure-go/tenure/internal/test/wait"
	"github.com/twmb/franz-go/pkg/kfake"
)

// NATS starts a server with JetStream.
func NATS(t *testing.T, users ...*server.User) *server.Server {
	t.Helper()
	return Start(t, &server.Options{Users: users, JetStream: true})
}

// Start starts a server with these options, on a free port unless they name one.
func Start(t *testing.T, o *server.Options) *server.Server {
	t.Helper()
	o.NoLog, o.NoSigs = true, true
	if o.Port == 0 {
		o.Host, o.Port = ports.Host, server.RANDOM_PORT
	}
	if o.JetStream && o.StoreDir == "" {
		o.StoreDir = t.TempDir()
	}
	s, err := server.NewServer(o)
	must.OK(t, err)
	s.Start()
	t.Cleanup(func() {
		s.Shutdown()
		s.WaitForShutdown()
	})
	wait.Until(t, "the server starts", func() bool { return s.ReadyForConnections(time.Second) })
	return s
}

// JetStream connects to the JetStream of a server.
func JetStream(t *testing.T, url string) jetstream.JetStream {
	t.Helper()
	nc, err := nats.Connect(url)
	must.OK(t, err)
	t.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	must.OK(t, err)
	return js
}

// DeleteKey does the same as "nats kv del".
func DeleteKey(t *testing.T, url, bucket, key string) {
	t.Helper()
	ctx := wait.Context(t)
	kv, err := JetStream(t, url).KeyValue(ctx, bucket)
	if err == nil {
		err = kv.Delete(ctx, key)
	}
	must.OK(t, err)
}

// Kafka starts three brokers, and returns how a URL names them.
func Kafka(t *testing.T, opts ...kfake.Opt) string {
	t.Helper()
	c, err := kfake.NewCluster(append([]kfake.Opt{kfake.NumBrokers(3), kfake.GroupMinSessionTimeout(time.Second)}, opts...)...)
	must.OK(t, err)
	t.Cleanup(c.Close)
	return strings.Join(c.ListenAddrs(), ",")
}

// Objects is object storage whose bucket is named "bucket".
type Objects struct {
	// URL names a place in the bucket.
	URL string
	// Gets and Puts count the requests that were answered.
	Gets, Puts atomic.Int64
	// Down makes it answer no request.
	Down atomic.Bool
	// ReadOnly refuses writes, and Careless ignores their conditions. Set these before the first
	// request of the test. An earlier one may come from a client of another server that had this
	// port.
	ReadOnly, Careless atomic.Bool

	inner http.Handler
}

// StartObjects starts object storage.
func StartObjects(t *testing.T) *Objects {
	t.Helper()
	backend := s3mem.New()
	must.OK(t, backend.CreateBucket("bucket"))
	o := &Objects{inner: gofakes3.New(backend).Server()}
	s := httptest.NewServer(o)
	t.Cleanup(s.Close)
	o.URL = "s3://bucket/p?region=r&endpoint=" + s.URL
	return o
}

// ServeHTTP answers one request.
func (o *Objects) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	put := r.Method == http.MethodPut
	switch {
	case o.Down.Load():
		panic(http.ErrAbortHandler)
	case put && o.ReadOnly.Load():
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprint(w, "<Error><Code>AccessDenied</Code><Message>no</Message></Error>")
		return
	case put && o.Careless.Load():
		r.Header.Del("If-Match")
		r.Header.Del("If-None-Match")
	}
	o.inner.ServeHTTP(w, r)
	if put {
		o.Puts.Add(1)
	} else {
		o.Gets.Add(1)
	}
}
