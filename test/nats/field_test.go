//go:build integration

package nats

import (
	"context"
	"crypto/rand"
	"flag"
	"os"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/natskv"
	"github.com/tenure-go/tenure/internal/test/wait"
	"github.com/tenure-go/tenure/test/internal/asking"
	"github.com/tenure-go/tenure/test/internal/natsd"
	"github.com/tenure-go/tenure/test/internal/reign"
	"github.com/tenure-go/tenure/test/internal/relay"
)

// TestMain lets more tests run in parallel than there are processors, because the tests mostly
// wait.
func TestMain(m *testing.M) {
	natsd.Main()
	flag.Parse()
	if err := flag.Set("test.parallel", "10"); err != nil {
		panic(err)
	}
	code := m.Run()
	natsd.End()
	os.Exit(code)
}

// soak skips a test in the short pass over the servers.
func soak(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("the soak does it")
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func connect(t testing.TB, url string) jetstream.JetStream {
	t.Helper()
	return natsd.Connect(t, []string{url})
}

func openStore(t testing.TB, js jetstream.JetStream, bucket string, opts ...natskv.Option) *natskv.Store {
	t.Helper()
	s, err := natskv.Open(wait.Context(t), js, bucket, opts...)
	must(t, err)
	t.Cleanup(func() { must(t, s.Close()) })
	return s
}

// addBucket creates a bucket as an operator does.
func addBucket(t testing.TB, js jetstream.JetStream, change ...func(*jetstream.KeyValueConfig)) (kv jetstream.KeyValue) {
	t.Helper()
	c := jetstream.KeyValueConfig{Bucket: "B" + rand.Text()[:12], History: 1, Storage: jetstream.FileStorage}
	for _, ch := range change {
		ch(&c)
	}
	// A cluster may not have found the place for it yet.
	wait.Succeeds(t, "a bucket", func(ctx context.Context) (err error) {
		kv, err = js.CreateKeyValue(ctx, c)
		return err
	})
	return kv
}

// key is the election of every test.
const key = "billing"

// field is an election on a server process, with candidates that come and go.
type field struct {
	*reign.Reign
	lease time.Duration
	// vouched lets candidates assume that an empty bucket is the first of its name, so that they
	// need not wait for a lease.
	vouched bool
	server  *natsd.Server
	js      jetstream.JetStream // the operator's
	kv      jetstream.KeyValue
	store   driver.Store
}

func newField(t testing.TB, lease time.Duration, change ...func(*jetstream.KeyValueConfig)) *field {
	t.Helper()
	f := &field{Reign: reign.New(t, key, asking.ByTerm), lease: lease}
	var err error
	f.server, err = natsd.Start(t.TempDir())
	must(t, err)
	t.Cleanup(f.server.Kill)
	f.js = connect(t, f.server.URL())
	f.kv = addBucket(t, f.js, change...)
	f.store = openStore(t, f.js, f.kv.Bucket())
	return f
}

// relayed returns a relay to the server.
func (f *field) relayed() *relay.Relay {
	f.Helper()
	r, err := relay.New(f.server.URL())
	must(f, err)
	f.Cleanup(r.Close)
	return r
}

// join adds a candidate over its own connection, which can be cut.
func (f *field) join(id string) *reign.Candidate {
	f.Helper()
	r := f.relayed()
	var opts []natskv.Option
	if f.vouched {
		opts = append(opts, natskv.Pristine())
	}
	return f.Join(openStore(f, connect(f, r.URL()), f.kv.Bucket(), opts...), r, tenure.Config{ID: id, Lease: f.lease})
}

// latest returns the highest token so far.
func (f *field) latest() (token uint64) {
	for _, t := range f.Terms() {
		token = max(token, t.Token())
	}
	return token
}

// record returns the record in the store, as the operator sees it.
func (f *field) record() (e driver.Entry) {
	f.Helper()
	wait.Succeeds(f, "the operator reads the record", func(context.Context) (err error) {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		e, err = f.store.Read(ctx, key)
		return err
	})
	return e
}
