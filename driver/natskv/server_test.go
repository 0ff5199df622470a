package natskv

import (
	"context"
	"crypto/rand"
	"errors"
	"flag"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/natskv/internal/connection"
	"github.com/tenure-go/tenure/driver/natskv/internal/natstest"
	"github.com/tenure-go/tenure/internal/test/wait"
)

// TestMain lets more tests run in parallel than there are processors, because the tests mostly
// wait.
func TestMain(m *testing.M) {
	asProcess()
	if err := flag.Set("test.parallel", "16"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// These are functions of natstest, under the names that the tests of this package use.
var (
	startServer      = natstest.StartServer
	withoutJetStream = natstest.WithoutJetStream
	connect          = natstest.Connect
	newJetStream     = natstest.JetStream
	inBubble         = natstest.InBubble
)

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
	if err != nil {
		t.Fatal(err)
	}
	return kv
}

func inMemory(c *jetstream.KeyValueConfig) { c.Storage = jetstream.MemoryStorage }

func withTTL(ttl time.Duration) func(*jetstream.KeyValueConfig) {
	return func(c *jetstream.KeyValueConfig) { c.TTL = ttl }
}

func openStore(t testing.TB, js jetstream.JetStream, name string, opts ...Option) *Store {
	t.Helper()
	var s *Store
	err := undisturbed(wait.Context(t), func(ctx context.Context) (err error) {
		s, err = Open(ctx, js, name, opts...)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// unopened returns a store on bucket B without a request to the server.
func unopened(t testing.TB, nc *nats.Conn) *Store {
	return newStore(newBucket(connection.Borrow(newJetStream(t, nc)), "B"))
}

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
	store  *Store
}

func newFixture(t testing.TB, change ...func(*jetstream.KeyValueConfig)) *fixture {
	t.Helper()
	s := startServer(t)
	nc := connect(t, s.ClientURL())
	js := newJetStream(t, nc)
	kv := addBucket(t, js, change...)
	return &fixture{TB: t, server: s, nc: nc, js: js, kv: kv, store: openStore(t, js, kv.Bucket())}
}

const testKey = "billing"

// put writes without the store and returns the sequence.
func (f *fixture) put(key, value string) uint64 {
	f.Helper()
	seq, err := f.kv.Put(wait.Context(f), key, []byte(value))
	if err != nil {
		f.Fatal(err)
	}
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

func (f *fixture) must(err error) {
	f.Helper()
	if err != nil {
		f.Fatal(err)
	}
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
	described, err := convert(status.(*jetstream.KeyValueBucketStatus).StreamInfo())
	f.must(err)
	if first := described.Config.FirstSeq; first > 1 {
		return floor - (first - 1)
	}
	if from := uint64(described.life()); floor >= from && from > 0 {
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
