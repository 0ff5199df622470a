package natstest

import (
	"context"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver/drivertest"
	"github.com/tenure-go/tenure/driver/natskv"
	"github.com/tenure-go/tenure/driver/natskv/internal/test/natsnet"
	"github.com/tenure-go/tenure/electiontest"
	"github.com/tenure-go/tenure/internal/test/wait"
)

// variant is one way to open a store.
type variant struct {
	name   string
	bucket func(*jetstream.KeyValueConfig)
	open   reaching
	denies bool // it can detect a missing right
	rare   bool // nearly the same as another
	create bool // the bucket is one of Create
}

func variants() []variant {
	return []variant{
		{"file", func(*jetstream.KeyValueConfig) {}, opened, true, false, false},
		{"created", func(*jetstream.KeyValueConfig) {}, vouched, true, false, true},
		{"memory", inMemory, opened, true, true, false},
		{"ttl", withTTL(5 * time.Minute), opened, true, true, false},
		{"handle", func(*jetstream.KeyValueConfig) {}, handled, false, false, false},
		{"legacy handle", func(*jetstream.KeyValueConfig) {}, handledLegacy, false, true, false},
	}
}

// TestConformance runs in this process. TestConformanceOnSockets has all variants.
func TestConformance(t *testing.T) {
	v := variant{"memory", inMemory, opened, true, false, true}
	s := StartServer(t, withLimitedUser)
	drivertest.Run(t, func(t testing.TB) drivertest.Harness { return v.harness(t, s) })
}

// TestElections runs in virtual time. TestElectionsOnSockets does not.
func TestElections(t *testing.T) {
	v := variant{"memory", inMemory, opened, true, false, false}
	PrepareBubble(t)
	electiontest.RunInBubbles(t, func(t testing.TB) drivertest.Harness {
		PrepareBubble(t)
		return v.harness(t, StartServer(t, withLimitedUser))
	})
}

// withLimitedUser adds a user that may only see the settings of buckets, and a user that may do
// everything.
func withLimitedUser(o *server.Options) {
	o.Users = []*server.User{
		{Username: "all", Password: "x"},
		{Username: "nobody", Password: "x", Permissions: permissions([]string{"$JS.API.STREAM.INFO.*"}, "_INBOX.>")},
	}
}

func permissions(publish []string, subscribe ...string) *server.Permissions {
	if len(publish) == 0 {
		publish = []string{"nothing"} // an empty list would permit everything
	}
	return &server.Permissions{
		Publish:   &server.SubjectPermission{Allow: publish},
		Subscribe: &server.SubjectPermission{Allow: subscribe},
	}
}

// harness returns a harness on its own bucket, so that each case starts with an empty one.
func (v variant) harness(t testing.TB, s *server.Server) drivertest.Harness {
	t.Helper()
	operator := natsnet.Connect(t, s.ClientURL(), nats.UserInfo("all", "x"))
	kv := v.add(t, natsnet.JetStream(t, operator))
	h := drivertest.Harness{
		Peer:     v.open(t, operator, kv.Bucket()),
		Delete:   func(ctx context.Context, key string) error { return kv.Delete(ctx, key) },
		Purge:    purge(natsnet.JetStream(t, operator), kv.Bucket()),
		Recreate: v.recreate(t, natsnet.JetStream(t, operator), kv.Bucket()),
		Patience: wait.Left(),
	}
	p := natsnet.StartProxy(t, s.ClientURL())
	nc := natsnet.Connect(t, p.URL(), nats.UserInfo("all", "x"))
	h.Store = v.open(t, nc, kv.Bucket())
	h.Cut = func() (heal func()) {
		mend, over := p.Cut(), nc.Stats().Reconnects
		// A request that is sent before the loss is noticed is lost, and the caller waits for it.
		return func() {
			mend()
			wait.Until(t, "the connection is recreated", func() bool { return nc.Stats().Reconnects > over })
		}
	}
	if v.denies {
		nobody := natsnet.JetStream(t, natsnet.Connect(t, s.ClientURL(), nats.UserInfo("nobody", "x")))
		h.Denied = openStore(t, nobody, kv.Bucket())
	}
	return h
}

func (v variant) add(t testing.TB, js jetstream.JetStream) jetstream.KeyValue {
	t.Helper()
	return v.addNamed(t, js, newBucketName())
}

func (v variant) addNamed(t testing.TB, js jetstream.JetStream, name string) jetstream.KeyValue {
	t.Helper()
	if !v.create {
		return addBucket(t, js, v.bucket, func(c *jetstream.KeyValueConfig) { c.Bucket = name })
	}
	return created(t, js, name, v.bucket)
}

func (v variant) recreate(t testing.TB, js jetstream.JetStream, name string) func(context.Context) error {
	return func(ctx context.Context) error {
		if err := js.DeleteKeyValue(ctx, name); err != nil {
			return err
		}
		v.addNamed(t, js, name)
		return nil
	}
}

// created returns a bucket of Create.
func created(t testing.TB, js jetstream.JetStream, name string, opts ...natskv.CreateOption) jetstream.KeyValue {
	t.Helper()
	openStore(t, js, name, natskv.Create(opts...))
	kv, err := js.KeyValue(wait.Context(t), name)
	must(t, err)
	return kv
}

// purge removes the messages of a key, including the marker, which "nats kv purge" leaves.
func purge(js jetstream.JetStream, bucket string) func(context.Context, string) error {
	return func(ctx context.Context, key string) error {
		stream, err := js.Stream(ctx, "KV_"+bucket)
		if err != nil {
			return err
		}
		return stream.Purge(ctx, jetstream.WithPurgeSubject("$KV."+bucket+"."+key))
	}
}

// reaching is a way to open a bucket.
type reaching = func(t testing.TB, nc *nats.Conn, bucket string, opts ...natskv.Option) *natskv.Store

func opened(t testing.TB, nc *nats.Conn, bucket string, opts ...natskv.Option) *natskv.Store {
	return openStore(t, natsnet.JetStream(t, nc), bucket, opts...)
}

// vouched lets the first election in a bucket begin at once.
func vouched(t testing.TB, nc *nats.Conn, bucket string, opts ...natskv.Option) *natskv.Store {
	return opened(t, nc, bucket, append(opts, natskv.Pristine())...)
}

func handled(t testing.TB, nc *nats.Conn, bucket string, opts ...natskv.Option) *natskv.Store {
	kv, err := natsnet.JetStream(t, nc).KeyValue(wait.Context(t), bucket)
	must(t, err)
	return closedAfter(t, natskv.FromKeyValue(kv, opts...))
}

func handledLegacy(t testing.TB, nc *nats.Conn, bucket string, opts ...natskv.Option) *natskv.Store {
	js, err := nc.JetStream()
	must(t, err)
	kv, err := js.KeyValue(bucket)
	must(t, err)
	return closedAfter(t, natskv.FromLegacyKeyValue(kv, opts...))
}

func closedAfter(t testing.TB, s *natskv.Store) *natskv.Store {
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// work is a leader's work.
type work = func(ctx context.Context, token uint64) error

// sample is the code in the README. The core's TestReadmeShowsTheSample compares the two.
func sample(ctx context.Context, js jetstream.JetStream, serve work) error {
	// The README begins here.
	store, err := natskv.Open(ctx, js, "ELECTIONS", natskv.Create())
	if err != nil {
		return err
	}
	e, err := tenure.New(store, "billing", tenure.Config{})
	if err != nil {
		return err
	}
	return e.Run(ctx, func(ctx context.Context, term *tenure.Term) error {
		// ctx ends when the work should: at shutdown, for a hand-over, or when the term is lost.
		return serve(ctx, term.Token())
	})
}

// TestReadme runs the sample. An earlier leader has released, so the sample leads at once.
func TestReadme(t *testing.T) {
	InBubble(t, func(t *testing.T) {
		js := natsnet.JetStream(t, natsnet.Connect(t, StartServer(t).ClientURL()))
		earlier := release(t, js)
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		var token uint64
		err := sample(ctx, js, func(ctx context.Context, of uint64) error {
			token = of
			stop()
			<-ctx.Done()
			return ctx.Err()
		})
		if err != nil || token <= earlier {
			t.Errorf("led with the token %d after %d, and returned %v", token, earlier, err)
		}
	})
}

// release leads and releases the lease, and returns the token.
func release(t *testing.T, js jetstream.JetStream) uint64 {
	t.Helper()
	store, err := natskv.Open(t.Context(), js, "ELECTIONS", natskv.Create(), natskv.Pristine())
	if err != nil {
		t.Fatal(err)
	}
	e, err := tenure.New(store, "billing", tenure.Config{})
	if err != nil {
		t.Fatal(err)
	}
	term, err := e.Campaign(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := term.Resign(t.Context()); err != nil {
		t.Fatal(err)
	}
	return term.Token()
}
