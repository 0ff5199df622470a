//go:build integration

package natstest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/natskv"
	"github.com/tenure-go/tenure/driver/natskv/internal/test/natsnet"
	"github.com/tenure-go/tenure/internal/test/wait"
)

// configured runs a server from a configuration file.
func configured(t testing.TB, text string, change ...func(*server.Options)) *server.Server {
	t.Helper()
	file := filepath.Join(t.TempDir(), "nats.conf")
	must(t, os.WriteFile(file, []byte(text), 0o600))
	o, err := server.ProcessConfigFile(file)
	must(t, err)
	return StartServer(t, func(into *server.Options) {
		plain := *into
		*into = *o
		into.Host, into.Port, into.StoreDir, into.DontListen = plain.Host, plain.Port, plain.StoreDir, plain.DontListen
		into.NoSigs = true
		for _, c := range change {
			c(into)
		}
	})
}

const accounts = `
jetstream: {}
accounts {
	WITH: { jetstream: enabled, users: [ { user: with, password: x } ] }
	WITHOUT: { users: [ { user: without, password: x } ] }
}`

// TestOpenErrors: the kind and the text of each error show an operator how to fix it.
func TestOpenErrors(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		make func(t *testing.T) (js jetstream.JetStream, bucket string)
		kind error
		text []string
	}{
		{"name", func(t *testing.T) (jetstream.JetStream, string) { return nil, "a.b" },
			jetstream.ErrInvalidBucketName, []string{`"a.b"`, "letters"}},
		{"empty name", func(t *testing.T) (jetstream.JetStream, string) { return nil, "" },
			jetstream.ErrInvalidBucketName, nil},
		{"no bucket", func(t *testing.T) (jetstream.JetStream, string) {
			return natsnet.JetStream(t, natsnet.Connect(t, StartServer(t).ClientURL())), "ELECTIONS"
		}, jetstream.ErrBucketNotFound, []string{"nats kv add ELECTIONS --history 1 --storage file", "natskv.Create"}},
		{"no JetStream", func(t *testing.T) (jetstream.JetStream, string) {
			return natsnet.JetStream(t, natsnet.Connect(t, StartServer(t, WithoutJetStream).ClientURL())), "B"
		}, jetstream.ErrJetStreamNotEnabled, []string{"jetstream {}", "-js", "domain"}},
		{"no JetStream in the account", func(t *testing.T) (jetstream.JetStream, string) {
			return natsnet.JetStream(t, natsnet.Connect(t, configured(t, accounts).ClientURL(), nats.UserInfo("without", "x"))), "B"
		}, jetstream.ErrJetStreamNotEnabledForAccount, []string{"jetstream: enabled", "account"}},
		{"wrong domain", func(t *testing.T) (jetstream.JetStream, string) {
			js, err := jetstream.NewWithDomain(natsnet.Connect(t, StartServer(t).ClientURL()), "hub")
			must(t, err)
			return js, "B"
		}, jetstream.ErrJetStreamNotEnabled, []string{"domain"}},
		{"no server", func(t *testing.T) (jetstream.JetStream, string) {
			nc, err := nats.Connect(fmt.Sprint("nats://127.0.0.1:", FreePort(t)), nats.RetryOnFailedConnect(true))
			must(t, err)
			t.Cleanup(nc.Close)
			return natsnet.JetStream(t, nc), "B"
		}, nil, []string{"check the URL"}},
		{"closed connection", func(t *testing.T) (jetstream.JetStream, string) {
			nc := natsnet.Connect(t, StartServer(t).ClientURL())
			nc.Close()
			return natsnet.JetStream(t, nc), "B"
		}, nats.ErrConnectionClosed, []string{"check the URL"}},
		{"no right", func(t *testing.T) (jetstream.JetStream, string) {
			return natsnet.JetStream(t, newRightsFixture(t, nil, "_INBOX.>").user), "B"
		}, driver.ErrDenied, []string{"publish", "$JS.API.STREAM.INFO.KV_B"}},
		{"no answer", func(t *testing.T) (jetstream.JetStream, string) {
			nc := natsnet.Connect(t, StartServer(t, WithoutJetStream).ClientURL())
			if _, err := nc.SubscribeSync("$JS.API.>"); err != nil {
				t.Fatal(err)
			}
			return natsnet.JetStream(t, nc), "B"
		}, context.DeadlineExceeded, []string{"does not answer"}},
		{"no bucket of that stream", func(t *testing.T) (jetstream.JetStream, string) {
			f := newFixture(t)
			_, err := f.js.CreateStream(wait.Context(t), jetstream.StreamConfig{Name: "KV_S", Subjects: []string{"s"}})
			f.must(err)
			return f.js, "S"
		}, jetstream.ErrBadBucket, []string{"KV_S", "$KV.S.>"}},
		{"mirror", func(t *testing.T) (jetstream.JetStream, string) {
			f := newFixture(t)
			mirror := addBucket(t, f.js, func(c *jetstream.KeyValueConfig) {
				c.Mirror = &jetstream.StreamSource{Name: f.kv.Bucket()}
			})
			return f.js, mirror.Bucket()
		}, jetstream.ErrBadBucket, []string{"mirror", "original"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			js, bucket := c.make(t)
			limit := wait.Left()
			if c.kind == context.DeadlineExceeded { //nolint:errorlint // the exact kind
				limit = 300 * time.Millisecond
			}
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			defer cancel()
			_, err := natskv.Open(ctx, js, bucket)
			if err == nil {
				t.Fatal("it was opened")
			}
			if c.kind != nil && !errors.Is(err, c.kind) {
				t.Errorf("%v; want one that is %q", err, c.kind)
			}
			for _, text := range append(c.text, bucket) {
				if !strings.Contains(err.Error(), text) {
					t.Errorf("%v; want it to say %q", err, text)
				}
			}
		})
	}
}

// TestOpenCreates creates a bucket for which Inspect finds only that there is a single server.
func TestOpenCreates(t *testing.T) {
	t.Parallel()
	js := natsnet.JetStream(t, natsnet.Connect(t, StartServer(t).ClientURL()))
	s := openStore(t, js, "ELECTIONS", natskv.Create(natskv.MaxBytes(1<<20)))
	kv, err := js.KeyValue(wait.Context(t), "ELECTIONS")
	must(t, err)
	status, err := kv.Status(wait.Context(t))
	must(t, err)
	c := status.Config()
	if c.Storage != jetstream.FileStorage || c.History != 1 || c.TTL != 0 || c.Replicas != 1 || c.MaxBytes != 1<<20 {
		t.Errorf("created %+v", c)
	}
	if status.LimitMarkerTTL() != 2*time.Hour {
		t.Errorf("markers are kept for %v; want 2h", status.LimitMarkerTTL())
	}
	found, err := s.Inspect(wait.Context(t), 15*time.Second)
	must(t, err)
	for _, f := range found {
		if f.Severity != driver.Advice {
			t.Errorf("found %v", f)
		}
	}
}

// TestOpenKeeps: an existing bucket keeps its owner's settings.
func TestOpenKeeps(t *testing.T) {
	f := newFixture(t, withTTL(time.Hour), func(c *jetstream.KeyValueConfig) { c.History = 5 })
	seq := f.put(testKey, "v")
	s := openStore(t, f.js, f.kv.Bucket(), natskv.Create(natskv.Replicas(3)))
	if e := f.read(s, testKey); e.Version != versionOf(seq) {
		t.Errorf("read: %+v", e)
	}
	status, err := f.kv.Status(wait.Context(t))
	f.must(err)
	if status.TTL() != time.Hour || status.History() != 5 {
		t.Errorf("the bucket was changed: %+v", status.Config())
	}
}

// TestOpenCreatesOnce: candidates start together.
func TestOpenCreatesOnce(t *testing.T) {
	t.Parallel()
	s := StartServer(t)
	var all sync.WaitGroup
	for i := range 8 {
		js := natsnet.JetStream(t, natsnet.Connect(t, s.ClientURL()))
		all.Go(func() {
			if _, err := natskv.Open(wait.Context(t), js, "ELECTIONS", natskv.Create(natskv.MaxBytes(int64(1<<20+i)))); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
}

func TestOpenCannotCreate(t *testing.T) {
	t.Parallel()
	js := natsnet.JetStream(t, natsnet.Connect(t, StartServer(t).ClientURL()))
	_, err := natskv.Open(wait.Context(t), js, "B", natskv.Create(natskv.Replicas(3)))
	if err == nil || !strings.Contains(err.Error(), "replicas") {
		t.Errorf("three replicas on one server: %v", err)
	}
}
