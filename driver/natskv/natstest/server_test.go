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
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/natskv"
	"github.com/tenure-go/tenure/driver/natskv/internal/connection"
	"github.com/tenure-go/tenure/driver/natskv/internal/test/natsnet"
	"github.com/tenure-go/tenure/internal/test/wait"
)

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
