package natstest

import (
	"context"
	"crypto/rand"
	"errors"
	"flag"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/drivertest"
	"github.com/tenure-go/tenure/driver/natskv"
	"github.com/tenure-go/tenure/driver/natskv/internal/connection"
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

// TestMain lets more tests run in parallel than there are processors, because the tests mostly
// wait.
func TestMain(m *testing.M) {
	if err := flag.Set("test.parallel", "16"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// newBucketName returns a unique name, so that tests can share a server.
func newBucketName() string { return "B" + rand.Text()[:12] }

// addBucket creates a bucket with the standard client, as programs and operators do.
func addBucket(t testing.TB, js jetstream.JetStream, change ...func(*jetstream.KeyValueConfig)) jetstream.KeyValue {
	t.Helper()
	c := jetstream.KeyValueConfig{Bucket: newBucketName(), History: 1, Storage: jetstream.FileStorage}
	for _, ch := range change {
		ch(&c)
	}
	var kv jetstream.KeyValue
	err := undisturbed(wait.Context(t), func(ctx context.Context) (err error) {
		kv, err = js.CreateKeyValue(ctx, c)
		return err
	})
	must(t, err)
	return kv
}

func inMemory(c *jetstream.KeyValueConfig) { c.Storage = jetstream.MemoryStorage }

func withTTL(ttl time.Duration) func(*jetstream.KeyValueConfig) {
	return func(c *jetstream.KeyValueConfig) { c.TTL = ttl }
}

func openStore(t testing.TB, js jetstream.JetStream, name string, opts ...natskv.Option) *natskv.Store {
	t.Helper()
	var s *natskv.Store
	err := undisturbed(wait.Context(t), func(ctx context.Context) (err error) {
		s, err = natskv.Open(ctx, js, name, opts...)
		return err
	})
	must(t, err)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// failure drops the result of a call.
func failure[T any](_ T, err error) error { return err }

// undisturbed repeats a call that the connection or the server could not serve at that time.
func undisturbed(ctx context.Context, do func(context.Context) error) error {
	for {
		err := do(ctx)
		if !disturbed(err) || ctx.Err() != nil {
			return err
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func disturbed(err error) bool {
	is := func(by error) bool { return errors.Is(err, by) }
	// An own connection is replaced if the machine is blocked for long enough.
	replaced := []error{connection.ErrOffline, connection.ErrLost, nats.ErrDisconnected, nats.ErrReconnectBufExceeded}
	// A server refuses a stream while it removes the files of an earlier stream with this name.
	return slices.ContainsFunc(replaced, is) || err != nil && strings.Contains(err.Error(), "error creating store for stream")
}

// fixture is a server with one bucket, seen by the store and by the standard client.
type fixture struct {
	testing.TB
	server *server.Server
	nc     *nats.Conn
	js     jetstream.JetStream
	kv     jetstream.KeyValue
	store  *natskv.Store
}

func newFixture(t testing.TB, change ...func(*jetstream.KeyValueConfig)) *fixture {
	t.Helper()
	s := StartServer(t)
	nc := natsnet.Connect(t, s.ClientURL())
	js := natsnet.JetStream(t, nc)
	kv := addBucket(t, js, change...)
	return &fixture{TB: t, server: s, nc: nc, js: js, kv: kv, store: openStore(t, js, kv.Bucket())}
}

const (
	testKey   = "billing"
	testLease = 15 * time.Second
)

// put writes without the store and returns the sequence.
func (f *fixture) put(key, value string) uint64 {
	f.Helper()
	seq, err := f.kv.Put(wait.Context(f), key, []byte(value))
	must(f, err)
	return seq
}

func (f *fixture) read(s driver.Store, key string) driver.Entry {
	f.Helper()
	var e driver.Entry
	f.must(undisturbed(wait.Context(f), func(ctx context.Context) (err error) {
		e, err = s.Read(ctx, key)
		return err
	}))
	return e
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (f *fixture) must(err error) {
	f.Helper()
	must(f, err)
}

func (f *fixture) same(what string, got, want driver.Entry, why string) {
	f.Helper()
	got.Floor = f.counted(got.Floor)
	if string(got.Value) != string(want.Value) || got.Version != want.Version || got.Floor != want.Floor ||
		got.Pristine != want.Pristine || !errors.Is(got.Notice, want.Notice) {
		f.Errorf("%s: %+v; want %+v: %s", what, got, want, why)
	}
}

// counted returns the sequence of a floor.
func (f *fixture) counted(floor uint64) uint64 {
	f.Helper()
	status, err := f.kv.Status(wait.Context(f))
	f.must(err)
	described := status.(*jetstream.KeyValueBucketStatus).StreamInfo()
	if first := described.Config.FirstSeq; first > 1 {
		return floor - (first - 1)
	}
	if from := uint64(described.Created.UnixMicro()); floor >= from && from > 0 {
		return floor - from
	}
	return floor
}

func named(name string) func(*jetstream.KeyValueConfig) {
	return func(c *jetstream.KeyValueConfig) { c.Bucket = name }
}

func readable(s driver.Store) bool {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	_, err := s.Read(ctx, testKey)
	return err == nil
}

func versionOf(sequence uint64) driver.Version {
	return driver.Version(strconv.FormatUint(sequence, 10))
}

// leftOpen reports whether an error of a write leaves open whether it was applied.
func leftOpen(err error) bool {
	return err != nil && !errors.Is(err, driver.ErrConflict) && !errors.Is(err, driver.ErrDenied)
}

// hidesStream reports whether an error says that a handle does not describe its stream.
func hidesStream(err error) bool {
	return err != nil && strings.Contains(err.Error(), "the handle does not describe its stream")
}

// restart stops a server and runs another one on its directory and address.
func restart(t testing.TB, s *server.Server, between func(), change ...func(*server.Options)) *server.Server {
	t.Helper()
	host, port, err := net.SplitHostPort(natsnet.Host(t, s.ClientURL()))
	must(t, err)
	dir := s.StoreDir()
	s.Shutdown()
	s.WaitForShutdown()
	if between != nil {
		between()
	}
	return StartServer(t, append(change, func(o *server.Options) {
		o.StoreDir, o.Host = dir, host
		o.Port, _ = strconv.Atoi(port)
	})...)
}
