package natskv

import (
	"context"
	"crypto/tls"
	"errors"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/tenure-go/tenure/driver"
)

// losses are why a connection was lost, or what else it was told.
type losses struct {
	mu  sync.Mutex
	all []error
}

func (l *losses) option() nats.Option {
	return nats.DisconnectErrHandler(func(_ *nats.Conn, err error) { l.add(err) })
}

func (l *losses) add(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, err)
}

func (l *losses) reasons() []error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.all)
}

// unpinged leaves it to requests to find out that a server is gone.
var unpinged = nats.PingInterval(time.Hour)

// TestOwnOptions: what says where to connect and who one is comes along, what would tell the program of a connection that
// it does not know does not.
func TestOwnOptions(t *testing.T) {
	tells := func(*nats.Conn) {}
	of := nats.GetDefaultOptions()
	for _, set := range []nats.Option{
		nats.Name("billing"), nats.UserInfo("user", "x"), nats.CustomInboxPrefix("_MINE"), nats.Timeout(7 * time.Second),
		nats.Secure(&tls.Config{ServerName: "store", MinVersion: tls.VersionTLS13}), nats.DontRandomize(),
		nats.ClosedHandler(tells), nats.ConnectHandler(tells), nats.ReconnectHandler(tells), nats.LameDuckModeHandler(tells),
		nats.DiscoveredServersHandler(tells), nats.DisconnectErrHandler(func(*nats.Conn, error) {}),
		nats.DisconnectHandler(tells), nats.ReconnectErrHandler(func(*nats.Conn, error) {}),
		nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}), nats.RetryOnFailedConnect(true), nats.NoReconnect(),
		nats.UserJWT(func() (string, error) { return "", nil }, func([]byte) ([]byte, error) { return nil, nil }),
	} {
		if err := set(&of); err != nil {
			t.Fatal(err)
		}
	}
	of.Servers = []string{"nats://a:4222", "nats://b:4222"}
	got, err := opening{}.settings(of)
	if err != nil {
		t.Fatal(err)
	}
	if got.Name != "billing (elections)" || got.PingInterval != time.Second || got.MaxPingsOut != 2 || got.ReconnectBufSize != -1 ||
		!got.AllowReconnect || got.MaxReconnect != -1 || got.RetryOnFailedConnect || !got.IgnoreAuthErrorAbort {
		t.Errorf("made %+v", got)
	}
	changed := []string{
		"Name", "PingInterval", "MaxPingsOut", "ReconnectBufSize", "AllowReconnect", "MaxReconnect", "RetryOnFailedConnect",
		"IgnoreAuthErrorAbort", "CustomReconnectDelayCB", "FlusherTimeout", "ReconnectOnFlusherError", "NoCallbacksAfterClientClose",
	}
	deaf := []string{
		"ClosedCB", "DisconnectedCB", "DisconnectedErrCB", "ConnectedCB", "ReconnectedCB", "DiscoveredServersCB", "AsyncErrorCB",
		"ReconnectErrCB", "LameDuckModeHandler",
	}
	was, is := reflect.ValueOf(of), reflect.ValueOf(got)
	for _, name := range deaf {
		if was.FieldByName(name).IsNil() || !is.FieldByName(name).IsNil() {
			t.Errorf("%s was copied, or not tried", name)
		}
	}
	for i := range was.NumField() {
		name, kind := was.Type().Field(i).Name, was.Field(i).Kind()
		switch {
		case slices.Contains(changed, name), slices.Contains(deaf, name):
		case kind == reflect.Func:
			if was.Field(i).Pointer() != is.Field(i).Pointer() {
				t.Errorf("%s was changed", name)
			}
		case !reflect.DeepEqual(was.Field(i).Interface(), is.Field(i).Interface()):
			t.Errorf("%s is %v; want %v", name, is.Field(i), was.Field(i))
		}
	}
}

// TestOwnOptionsCanBeChanged: the last word is the caller's, and what we are told is told on.
func TestOwnOptionsCanBeChanged(t *testing.T) {
	f := newFixture(t)
	var lost losses
	s := openStore(t, f.js, f.kv.Bucket(), OwnConnection(nats.Name("mine"), nats.MaxPingsOutstanding(5), lost.option()))
	if o := s.own.nc.Opts; o.Name != "mine" || o.MaxPingsOut != 5 {
		t.Errorf("connected with %+v", o)
	}
	restart(t, f.server, func() {})
	eventually(t, "the caller hears of the loss", func() bool { return len(lost.reasons()) == 1 })
	broken := errors.New("broken")
	_, err := Open(testContext(t), f.js, f.kv.Bucket(), OwnConnection(func(*nats.Options) error { return broken }))
	if !errors.Is(err, broken) {
		t.Errorf("with an option that fails: %v", err)
	}
}

// TestOwnConnectionIsApart: it needs the given one no more, and ends with the store.
func TestOwnConnectionIsApart(t *testing.T) {
	f := newFixture(t)
	given := connect(t, f.server.ClientURL(), nats.CustomInboxPrefix("_MINE"))
	js := newJetStream(t, given)
	given.Close()
	s := openStore(t, js, f.kv.Bucket(), OwnConnection())
	h := watchAll(t, s, testKey)
	h.await(t, versionOf(f.put(testKey, "v")))
	if e := f.read(s, testKey); string(e.Value) != "v" {
		t.Errorf("read: %+v", e)
	}
	before := f.server.NumClients()
	for range 2 {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	eventually(t, "the connection ends with the store", func() bool { return f.server.NumClients() < before })
	if _, err := s.Read(testContext(t), testKey); !errors.Is(err, nats.ErrConnectionClosed) {
		t.Errorf("after Close: %v", err)
	}
}

// TestOwnConnectionFails: no bucket is opened, and no connection is left behind.
func TestOwnConnectionFails(t *testing.T) {
	s := startServer(t, func(o *server.Options) { o.Username, o.Password = "user", "x" })
	given := connect(t, s.ClientURL(), nats.UserInfo("user", "x"))
	js := newJetStream(t, given)
	if _, err := Open(testContext(t), js, "B", OwnConnection()); !errors.Is(err, jetstream.ErrBucketNotFound) {
		t.Errorf("no bucket: %v", err)
	}
	eventually(t, "the connection is closed", func() bool { return s.NumClients() == 1 })
	_, err := Open(testContext(t), js, "B", OwnConnection(nats.UserInfo("user", "wrong")))
	if !errors.Is(err, driver.ErrDenied) || !errors.Is(err, nats.ErrAuthorization) {
		t.Errorf("wrong credentials: %v", err)
	}
	s.Shutdown()
	if _, err := Open(testContext(t), js, "B", OwnConnection()); !errors.Is(err, nats.ErrNoServers) {
		t.Errorf("no server: %v", err)
	}
}

// TestOwnConnectionInDomain: it asks where the given context asks.
func TestOwnConnectionInDomain(t *testing.T) {
	s := startServer(t, func(o *server.Options) { o.JetStreamDomain = "hub" })
	nc := connect(t, s.ClientURL())
	inDomain, err := jetstream.NewWithDomain(nc, "hub")
	if err != nil {
		t.Fatal(err)
	}
	prefixed, err := jetstream.NewWithAPIPrefix(nc, "$JS.hub.API")
	if err != nil {
		t.Fatal(err)
	}
	for _, js := range []jetstream.JetStream{inDomain, prefixed} {
		store := openStore(t, js, "ELECTIONS", Create(), OwnConnection())
		if got := store.cells.(*bucket).api; got != "$JS.hub.API." {
			t.Errorf("asks on %s", got)
		}
	}
}

// twoWays is a store with an own connection that knows two ways to one server, and stands on the first.
func twoWays(t *testing.T, f *fixture, opts ...nats.Option) (s *Store, first *proxy, lost *losses) {
	t.Helper()
	first, second := startProxy(t, f.server.ClientURL()), startProxy(t, f.server.ClientURL())
	lost = &losses{}
	given := connect(t, first.url()+","+second.url(), nats.DontRandomize())
	opts = append([]nats.Option{lost.option(), nats.IgnoreDiscoveredServers()}, opts...)
	s = openStore(t, newJetStream(t, given), f.kv.Bucket(), OwnConnection(opts...))
	if url := s.own.nc.ConnectedUrl(); url != first.url() {
		t.Fatalf("connected to %s; want %s", url, first.url())
	}
	return s, first, lost
}

// TestForcedReconnect: a request that is not answered, by a server that gives no sign of life either, is reason enough to
// try another one. Without it the write would fail until its own lease was over.
func TestForcedReconnect(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	s, first, lost := twoWays(t, f, unpinged)
	v, err := s.CompareAndSwap(testContext(t), testKey, "", []byte("first"))
	f.must(err)
	first.cut()
	start := time.Now()
	if _, err := s.CompareAndSwap(testContext(t), testKey, v, []byte("second")); outcomeOf(err) != open {
		t.Fatalf("a swap whose connection was given up: %v; want an error that leaves it open", err)
	}
	eventually(t, "one request is enough", func() bool { return len(lost.reasons()) == 1 })
	eventually(t, "the store is reached again", func() bool { return readable(s) })
	t.Logf("reached again after %v", time.Since(start))
	if e := f.read(s, testKey); string(e.Value) != "second" {
		t.Errorf("read %+v; want the write whose answer was lost", e)
	}
	if all := lost.reasons(); len(all) != 1 || !errors.Is(all[0], errSilent) {
		t.Errorf("lost %v; want one loss, by our own doing", all)
	}
}

// TestPings: a follower asks for nothing, and must find out all the same.
func TestPings(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	s, first, lost := twoWays(t, f)
	start := time.Now()
	first.cut()
	eventually(t, "the loss is noticed", func() bool { return len(lost.reasons()) == 1 })
	if err := lost.reasons()[0]; !errors.Is(err, nats.ErrStaleConnection) {
		t.Errorf("lost because of %v", err)
	}
	eventually(t, "the other way is taken", s.own.nc.IsConnected)
	t.Logf("connected again after %v", time.Since(start))
}

// TestSlowAnswers: a stream without a leader answers nobody, and another connection would not help.
func TestSlowAnswers(t *testing.T) {
	t.Parallel()
	server := startServer(t, withoutJetStream)
	responder := connect(t, server.ClientURL())
	release := make(chan struct{})
	asked := make(chan struct{}, 100)
	_, err := responder.Subscribe("$JS.API.STREAM.INFO.KV_B", func(m *nats.Msg) {
		go func() {
			asked <- struct{}{}
			<-release
			_ = m.Respond([]byte(`{"config":{"subjects":["$KV.B.>"]}}`))
		}()
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := responder.Flush(); err != nil {
		t.Fatal(err)
	}
	opened := make(chan *Store, 1)
	go func() {
		s, err := Open(testContext(t), newJetStream(t, connect(t, server.ClientURL())), "B", OwnConnection())
		if err != nil {
			t.Error(err)
		}
		opened <- s
	}()
	<-asked
	time.Sleep(2 * suspicious) // long enough to be doubted
	close(release)
	s := <-opened
	if s == nil {
		return
	}
	defer func() { _ = s.Close() }()
	eventually(t, "the server was asked for a sign of life", func() bool {
		s.own.mu.Lock()
		defer s.own.mu.Unlock()
		return !s.own.asking
	})
	if n := s.own.nc.Stats().Reconnects; n != 0 {
		t.Errorf("%d reconnects for the sake of a slow answer", n)
	}
}

// TestBusyServer: a pong may have to wait behind thousands of answers, and whoever sends those lives.
func TestBusyServer(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	s, first, lost := twoWays(t, f, unpinged)
	first.cut()
	k := s.own
	k.mu.Lock()
	k.asking = true
	k.mu.Unlock()
	k.tasks.Go(k.ask)
	time.Sleep(pongWithin / 2)
	k.complaint(errors.New("anything"), "_INBOX")
	k.tasks.Wait()
	if n := len(lost.reasons()); n > 0 || k.asking {
		t.Errorf("%d losses, asking %v; want the connection to be kept", n, k.asking)
	}
	k.doubt()
	eventually(t, "silence is no life", func() bool { return len(lost.reasons()) == 1 && readable(s) })
}

// TestCallersEnds: that a caller had little time, or left, says nothing about the connection.
func TestCallersEnds(t *testing.T) {
	f := newFixture(t)
	s, first, lost := twoWays(t, f, unpinged)
	first.cut()
	for range 20 {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
		_, _ = s.Read(ctx, testKey)
		cancel()
		gone, leave := context.WithCancel(t.Context())
		time.AfterFunc(5*time.Millisecond, leave)
		_, _ = s.Read(gone, testKey)
	}
	s.own.mu.Lock()
	defer s.own.mu.Unlock()
	if s.own.reads.age() > 0 || s.own.asking || len(lost.reasons()) > 0 {
		t.Errorf("failing for %v, asking %v, lost %v; want the connection not to be doubted", s.own.reads.age(), s.own.asking, lost.reasons())
	}
}

// TestStranded: a server that has lost the rest of its cluster gives signs of life, and nothing else. It is left, sooner if
// it says so.
func TestStranded(t *testing.T) {
	answer := func(text string) *nats.Msg { return &nats.Msg{Data: []byte(text)} }
	silent := func(k *keeper, what task) {
		k.unanswered(time.Now().Add(-suspicious), what, context.DeadlineExceeded)
	}
	for _, c := range []struct {
		name  string
		vain  func(k *keeper)
		after time.Duration // 0: never
	}{
		{"a write without an answer", func(k *keeper) { silent(k, writing) }, silentFor},
		{"a read without an answer", func(k *keeper) { silent(k, reading) }, silentFor},
		{"nobody listens", func(k *keeper) { k.unanswered(time.Now(), reading, nats.ErrNoResponders) }, inVainFor},
		{"not available", func(k *keeper) { k.answered(answer(`{"error":{"code":503,"err_code":10008}}`), reading) }, inVainFor},
		{"the last write is under way", func(k *keeper) { k.answered(answer(`{"error":{"code":400,"err_code":10164}}`), writing) }, inVainFor},
		{"writes fail and reads succeed", func(k *keeper) {
			k.answered(answer(`{"error":{"code":400,"err_code":10158}}`), writing)
			k.answered(answer(`{"message":{}}`), reading)
		}, inVainFor},
		{"a write without an answer, then only reads", func(k *keeper) {
			k.mu.Lock()
			begun := k.writes.live()
			k.mu.Unlock()
			if !begun {
				silent(k, writing)
			}
			k.answered(answer(`{"error":{"code":503,"err_code":10008}}`), reading)
		}, inVainFor},
		{"a write without an answer, then refused", func(k *keeper) {
			silent(k, writing)
			k.answered(answer(`{"error":{"code":400,"err_code":10071}}`), writing)
		}, inVainFor},
		{"the bucket is described, and cannot be read", func(k *keeper) {
			k.answered(answer(`{"error":{"code":503,"err_code":10008}}`), reading)
			k.answered(answer(`{"config":{}}`), asking)
		}, inVainFor},
		{"an ordinary conflict", func(k *keeper) { k.answered(answer(`{"error":{"code":400,"err_code":10071}}`), writing) }, 0},
		{"short contexts", func(k *keeper) { k.unanswered(time.Now(), reading, context.DeadlineExceeded) }, 0},
		{"denied", func(k *keeper) { k.unanswered(time.Now().Add(-time.Hour), reading, driver.ErrDenied) }, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFixture(t)
			s, _, lost := twoWays(t, f, unpinged)
			k := s.own
			failed := func(since time.Duration) {
				c.vain(k)
				k.mu.Lock()
				for _, all := range []*stretch{&k.reads, &k.writes} {
					if !all.since.IsZero() {
						all.since = time.Now().Add(-since)
					}
				}
				k.mu.Unlock()
				c.vain(k)
				k.tasks.Wait()
			}
			failed(inVainFor / 2)
			k.answered(answer(`{"stream":"KV_B","seq":1}`), writing) // after which all is well
			c.vain(k)
			if age := max(k.reads.age(), k.writes.age()); age > inVainFor/2 {
				t.Errorf("after a success the trouble is %v old", age)
			}
			failed(max(c.after, inVainFor) - inVainFor/2)
			if n := s.own.nc.Stats().Reconnects; n > 0 {
				t.Fatal("it moved too early")
			}
			failed(max(c.after, inVainFor))
			if c.after == 0 {
				if n := s.own.nc.Stats().Reconnects; n > 0 || len(lost.reasons()) > 0 {
					t.Error("it moved for no reason")
				}
				return
			}
			eventually(t, "it moves on", func() bool { return len(lost.reasons()) == 1 && readable(s) })
		})
	}
}

// TestMovesAreRare: where moving does not help, it must not become the trouble. It is tried for about as often in the next
// minute as in the first seconds.
func TestMovesAreRare(t *testing.T) {
	for _, c := range []struct{ trouble, pause time.Duration }{
		{0, time.Second}, {8 * time.Second, time.Second}, {20 * time.Second, 2500 * time.Millisecond}, {time.Hour, 30 * time.Second},
	} {
		k := &keeper{}
		if c.trouble > 0 {
			k.reads.add(time.Now().Add(-c.trouble), true)
		}
		if d := k.pause().Round(100 * time.Millisecond); d != c.pause {
			t.Errorf("in the trouble's %v the pause is %v; want %v", c.trouble, d, c.pause)
		}
		k.moved = time.Now().Add(-c.pause / 2)
		early := k.mayMove()
		k.moved = time.Now().Add(-c.pause - 100*time.Millisecond)
		if early || !k.mayMove() {
			t.Errorf("in the trouble's %v: early %v, after the pause %v", c.trouble, early, k.mayMove())
		}
	}
}

// TestStretch: an old failure has nothing to do with the next one, and a new connection gets time of its own.
func TestStretch(t *testing.T) {
	var s stretch
	s.add(time.Now().Add(-time.Minute), false)
	if !outlasts(time.Time{}, s) || outlasts(time.Now(), s) {
		t.Errorf("for an old connection %v, for a new one %v", outlasts(time.Time{}, s), outlasts(time.Now(), s))
	}
	s.last = s.last.Add(-2 * newStretch)
	s.add(time.Now(), false)
	if outlasts(time.Time{}, s) {
		t.Error("a failure of long ago counts")
	}
}

// TestFarServer: on a long way a sign of life takes long.
func TestFarServer(t *testing.T) {
	k := &keeper{way: 700 * time.Millisecond}
	if d := k.patience(); d != 2800*time.Millisecond {
		t.Errorf("patience is %v", d)
	}
	if k.way = time.Millisecond; k.patience() != pongWithin {
		t.Errorf("patience is %v", k.patience())
	}
}

// TestVanishedRequest: what a stream without a leader does not answer in time it never will, and there is time for more tries.
func TestVanishedRequest(t *testing.T) {
	t.Parallel()
	server := startServer(t, withoutJetStream)
	nc := connect(t, server.ClientURL())
	hearer := connect(t, server.ClientURL())
	if _, err := hearer.SubscribeSync(">"); err != nil {
		t.Fatal(err)
	}
	if err := hearer.Flush(); err != nil {
		t.Fatal(err)
	}
	b := newBucket(newJetStream(t, nc), "B")
	for what, call := range map[string]func(s *Store) error{
		"read": func(s *Store) error { _, err := s.Read(testContext(t), testKey); return err },
		"write": func(s *Store) error {
			_, err := s.CompareAndSwap(testContext(t), testKey, "1", []byte("v"))
			return err
		},
	} {
		start := time.Now()
		err := call(newStore(b))
		if d := time.Since(start); !errors.Is(err, errUnanswered) || outcomeOf(err) != open || d > patience/2 {
			t.Errorf("%s: %v after %v; want an error that leaves it open, in time", what, err, d)
		}
	}
}

// TestPulse: where others like it are answered a request may wait, since thousands of elections wait for each other.
func TestPulse(t *testing.T) {
	var p pulse
	began := time.Now().Add(-time.Minute)
	if d := p.quiet(began); d < time.Minute {
		t.Errorf("without any answer it was quiet for %v", d)
	}
	p.beat()
	if d := p.quiet(began); d > patience {
		t.Errorf("after an answer it was quiet for %v", d)
	}
	if d := p.quiet(time.Now()); d > patience {
		t.Errorf("from now on it was quiet for %v", d)
	}
}

// TestReadsQueue: thousands of followers that want to read must not stand in the server's queue before the leaders' renewals.
func TestReadsQueue(t *testing.T) {
	server := startServer(t, withoutJetStream)
	hearer := connect(t, server.ClientURL())
	asked := make(chan *nats.Msg, 2*readsAtOnce)
	if _, err := hearer.ChanSubscribe(">", asked); err != nil {
		t.Fatal(err)
	}
	if err := hearer.Flush(); err != nil {
		t.Fatal(err)
	}
	s := newStore(newBucket(newJetStream(t, connect(t, server.ClientURL())), "B"))
	ctx, leave := context.WithCancel(t.Context())
	var reads sync.WaitGroup
	for range readsAtOnce + 10 {
		reads.Go(func() { _, _ = s.Read(ctx, testKey) })
	}
	eventually(t, "the reads are sent", func() bool { return len(asked) == readsAtOnce })
	reads.Go(func() { _, _ = s.CompareAndSwap(ctx, testKey, "1", []byte("v")) })
	eventually(t, "a write goes past them", func() bool { return len(asked) == readsAtOnce+1 })
	leave()
	reads.Wait()
	if n := len(asked); n != readsAtOnce+1 {
		t.Errorf("%d requests; want %d reads and a write", n, readsAtOnce)
	}
	short, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if _, err := s.Read(short, testKey); err == nil {
		t.Error("a read without an answer succeeded")
	}
	for range len(asked) {
		<-asked
	}
	go func() { _, _ = s.Read(t.Context(), testKey) }()
	if m := <-asked; !strings.Contains(m.Subject, getMessage) {
		t.Errorf("asked on %s", m.Subject)
	}
}

// TestRefusedCredentials: a server that comes back with other users is told of as a missing right, and a new try is made
// for ever, since the next change of the configuration may let us in again.
func TestRefusedCredentials(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	var refusals losses
	s := openStore(t, newJetStream(t, connect(t, f.server.ClientURL(), nats.UserInfo("user", "x"))), f.kv.Bucket(),
		OwnConnection(nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { refusals.add(err) })))
	with := func(password string) func(*server.Options) {
		return func(o *server.Options) { o.Username, o.Password = "user", password }
	}
	refusing := restart(t, f.server, func() {}, with("other"))
	eventually(t, "the refusal is told", func() bool {
		_, err := s.CompareAndSwap(testContext(t), testKey, "", []byte("v"))
		return errors.Is(err, driver.ErrDenied) && errors.Is(err, nats.ErrAuthorization)
	})
	eventually(t, "it is tried again and again", func() bool { return len(refusals.reasons()) >= 4 })
	restart(t, refusing, func() {}, with("x"))
	eventually(t, "the store is reached again", func() bool { return readable(s) })
}

// TestBorrowedIsNotTouched: neither handlers nor options nor the connection itself, whatever happens to it.
func TestBorrowedIsNotTouched(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	p := startProxy(t, f.server.ClientURL())
	var lost losses
	nc := connect(t, p.url(), lost.option(), unpinged, nats.Name("theirs"))
	before, handlers := nc.Opts, handlersOf(nc)
	clients := f.server.NumClients()
	s := openStore(t, newJetStream(t, nc), f.kv.Bucket(), Create())
	h := watchAll(t, s, testKey)
	h.await(t, versionOf(f.put(testKey, "v")))
	p.cut()
	ctx, cancel := context.WithTimeout(t.Context(), suspicious+pongWithin+suspicious)
	defer cancel()
	if _, err := s.Read(ctx, testKey); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a read without an answer: %v; want it to end with its context", err)
	}
	s.cells.(*bucket).keep.astray()
	if n := nc.Stats().Reconnects; n != 0 || len(lost.reasons()) != 0 || !nc.IsConnected() {
		t.Errorf("%d reconnects, lost %v", n, lost.reasons())
	}
	if err := s.Close(); err != nil || !nc.IsConnected() {
		t.Errorf("after Close: %v, connected %v", err, nc.IsConnected())
	}
	if after := handlersOf(nc); after != handlers {
		t.Errorf("the handlers are %v; want %v", after, handlers)
	}
	a, b := reflect.ValueOf(before), reflect.ValueOf(nc.Opts)
	for i := range a.NumField() {
		if a.Field(i).Kind() != reflect.Func && !reflect.DeepEqual(a.Field(i).Interface(), b.Field(i).Interface()) {
			t.Errorf("the option %s was changed", a.Type().Field(i).Name)
		}
	}
	if n := f.server.NumClients(); n > clients {
		t.Errorf("%d clients on the server; want %d", n, clients)
	}
}

// handlersOf are the addresses of a connection's functions.
func handlersOf(nc *nats.Conn) [5]uintptr {
	return [5]uintptr{
		reflect.ValueOf(nc.ErrorHandler()).Pointer(), reflect.ValueOf(nc.DisconnectErrHandler()).Pointer(),
		reflect.ValueOf(nc.ReconnectHandler()).Pointer(), reflect.ValueOf(nc.ClosedHandler()).Pointer(),
		reflect.ValueOf(nc.Opts.CustomReconnectDelayCB).Pointer(),
	}
}
