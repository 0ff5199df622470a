//go:build integration

package nats

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	randv2 "math/rand/v2"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/natskv"
	"github.com/tenure-go/tenure/internal/test/wait"
	"github.com/tenure-go/tenure/test/internal/asking"
	"github.com/tenure-go/tenure/test/internal/history"
	"github.com/tenure-go/tenure/test/internal/natsd"
	"github.com/tenure-go/tenure/test/internal/reign"
	"github.com/tenure-go/tenure/test/internal/relay"
)

// arena is a cluster and a replicated bucket of the test.
type arena struct {
	*natsd.Cluster
	testing.TB
	bucket string
}

func newArena(t testing.TB) *arena {
	t.Helper()
	a := &arena{Cluster: natsd.Shared(t), TB: t}
	a.bucket = addBucket(t, a.connect(0), func(c *jetstream.KeyValueConfig) { c.Replicas = natsd.Members }).Bucket()
	must(t, a.Whole(wait.Context(t), a.stream()))
	return a
}

func (a *arena) stream() string { return "KV_" + a.bucket }

// follower returns a server that does not lead the bucket's stream.
func (a *arena) follower() *natsd.Server {
	a.Helper()
	leader, err := a.Leader(wait.Context(a), a.stream())
	must(a, err)
	return a.Others(leader)[0]
}

// connect connects first to one of the servers.
func (a *arena) connect(first int) jetstream.JetStream {
	a.Helper()
	all := a.URLs()
	first %= len(all)
	return natsd.Connect(a, append(all[first:], all[:first]...))
}

// open opens the bucket over an own connection.
func (a *arena) open(js jetstream.JetStream) *natskv.Store {
	a.Helper()
	return openStore(a, js, a.bucket, natskv.OwnConnection(), natskv.Pristine())
}

// past is a planted mistake: it reads from any copy.
type past struct {
	*natskv.Store
	kv jetstream.KeyValue
}

// Read is a Direct Get, which the nearest copy answers.
func (p past) Read(ctx context.Context, key string) (driver.Entry, error) {
	e, err := p.kv.Get(ctx, key)
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return p.Store.Read(ctx, key)
	}
	if err != nil {
		return driver.Entry{}, err
	}
	return driver.Entry{Value: e.Value(), Version: driver.Version(fmt.Sprint(e.Revision()))}, nil
}

// TestStaleReadsAreDetected: clients that read from any copy are detected when one copy is cut off.
// Without this, TestRegister/nats3 in package stores would prove nothing.
func TestStaleReadsAreDetected(t *testing.T) {
	soak(t)
	// A client may happen to read nothing there while that copy is behind.
	wait.Until(t, "a read shows an earlier state", func() (seen bool) {
		t.Run("try", func(t *testing.T) { seen = newArena(t).showsThePast() })
		return seen
	})
}

func (a *arena) showsThePast() bool {
	h := history.New("cell")
	ctx, cancel := history.Lasting(3*time.Second, func() bool { return true })
	defer cancel()
	var playing sync.WaitGroup
	for n := range 2 * natsd.Members { // two over each server
		js := a.connect(n)
		kv, err := js.KeyValue(wait.Context(a), a.bucket)
		must(a, err)
		store := past{a.open(js), kv}
		c := history.Client{ID: n, Attention: 500 * time.Millisecond, Rand: randv2.New(randv2.NewPCG(randv2.Uint64(), 0))}
		playing.Go(func() { h.Play(ctx, store, c) })
	}
	time.Sleep(time.Second) // all copies are alike at first
	a.Part(a.follower())
	playing.Wait()
	must(a, a.Mend(wait.Context(a)))
	last := a.open(a.connect(0))
	wait.Until(a, "a last read", func() bool {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_, ok := h.Read(ctx, last, 100)
		return ok
	})
	return len(h.Faults(history.Rules{Hasty: true})) > 0
}

// TestHostOfWatchIsFrozen: a watch receives changes again while the server that hosts it is still
// frozen. A consumer on the same server that no heartbeat watches receives nothing. That proves
// that the frozen server hosted the watch.
func TestHostOfWatchIsFrozen(t *testing.T) {
	soak(t)
	a := newArena(t)
	victim := a.follower()
	careless := a.hosted(victim, a.listen)
	store := a.open(a.connect(0))
	var pushed atomic.Pointer[driver.Entry]
	a.hosted(victim, func() (*atomic.Int64, func()) {
		stop, err := store.Watch(wait.Context(a), "key", func(e driver.Entry) { pushed.Store(&e) })
		must(a, err)
		return nil, stop
	})
	writer := a.open(connect(t, a.Others(victim)[0].URL()))
	before := careless.Load()
	must(t, victim.Pause())
	began := time.Now()
	wait.Succeeds(t, "the watch receives a write", func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		e, err := writer.Read(ctx, "key")
		if err != nil {
			return err
		}
		v, err := writer.CompareAndSwap(ctx, "key", e.Version, fmt.Append(nil, time.Since(began)))
		if err != nil {
			return err
		}
		if !wait.Within(100*time.Millisecond, func() bool { got := pushed.Load(); return got != nil && got.Version == v }) {
			return errors.New("it is not pushed")
		}
		return nil
	})
	t.Logf("the watch receives pushes again after %v", time.Since(began))
	if n := careless.Load() - before; n != 0 {
		t.Errorf("a consumer on the frozen server has delivered %d writes: it is hosted elsewhere", n)
	}
}

// hosted creates consumers until one is on that server, and ends the others.
func (a *arena) hosted(by *natsd.Server, make func() (received *atomic.Int64, stop func())) *atomic.Int64 {
	a.Helper()
	for range 50 {
		before := a.hosts()
		received, stop := make()
		var fresh []*natsd.Server
		for name, host := range a.hosts() {
			if _, old := before[name]; !old {
				fresh = append(fresh, host)
			}
		}
		if slices.Contains(fresh, by) {
			a.Cleanup(stop)
			return received
		}
		stop()
	}
	a.Fatalf("no consumer is on %s", by.Name())
	return nil
}

func (a *arena) hosts() map[string]*natsd.Server {
	a.Helper()
	hosts, err := a.Hosts(wait.Context(a), a.stream())
	must(a, err)
	return maps.Clone(hosts)
}

// listen creates a consumer without a watch of its heartbeats.
func (a *arena) listen() (*atomic.Int64, func()) {
	a.Helper()
	var received atomic.Int64
	nc := a.connect(0).Conn()
	inbox := nc.NewInbox()
	sub, err := nc.Subscribe(inbox, func(*nats.Msg) { received.Add(1) })
	must(a, err)
	request, err := json.Marshal(map[string]any{
		"stream_name": a.stream(),
		"config":      map[string]any{"deliver_subject": inbox, "deliver_policy": "new", "mem_storage": true, "num_replicas": 1},
	})
	must(a, err)
	answer, err := nc.Request("$JS.API.CONSUMER.CREATE."+a.stream(), request, 5*time.Second)
	must(a, err)
	var got struct{ Error *struct{ Description string } }
	must(a, json.Unmarshal(answer.Data, &got))
	if got.Error != nil {
		a.Fatal(got.Error.Description)
	}
	return &received, func() { _ = sub.Unsubscribe() }
}

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
