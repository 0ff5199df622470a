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
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/tenure-go/tenure/driver/natskv/internal/natstest"
)

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

// twoWays is a store with an own connection that knows two ways to one server, and stands on the first.
func twoWays(t *testing.T, f *fixture, opts ...nats.Option) (s *Store, first *natstest.Proxy, lost *natstest.Errors) {
	t.Helper()
	first, second := natstest.StartProxy(t, f.server.ClientURL()), natstest.StartProxy(t, f.server.ClientURL())
	lost = &natstest.Errors{}
	given := connect(t, first.URL()+","+second.URL(), nats.DontRandomize())
	opts = append([]nats.Option{lost.OfLosses(), nats.IgnoreDiscoveredServers()}, opts...)
	s = openStore(t, newJetStream(t, given), f.kv.Bucket(), OwnConnection(opts...))
	if url := s.own.nc.ConnectedUrl(); url != first.URL() || len(lost.All()) > 0 {
		t.Fatalf("connected to %s, lost %v; want %s", url, lost.All(), first.URL())
	}
	return s, first, lost
}

// TestForcedReconnect: a request that is not answered, by a server that gives no sign of life either, is reason enough to
// try another one. Without it the write would fail until its own lease was over.
func TestForcedReconnect(t *testing.T) {
	inBubble(t, forcedReconnect)
}

func forcedReconnect(t *testing.T) {
	f := newFixture(t)
	s, first, lost := twoWays(t, f, natstest.Unpinged)
	v, err := s.CompareAndSwap(testContext(t), testKey, "", []byte("first"))
	f.must(err)
	first.Cut()
	start := time.Now()
	if _, err := s.CompareAndSwap(testContext(t), testKey, v, []byte("second")); outcomeOf(err) != open {
		t.Errorf("a swap whose connection was given up: %v; want an error that leaves it open", err)
	}
	eventually(t, "one request is enough", func() bool { return len(lost.All()) > 0 })
	if d := time.Since(start); d > suspicious+pongWithin+lastLook {
		t.Errorf("given up only after %v", d)
	}
	eventually(t, "the store is reached again", func() bool { return readable(s) })
	t.Logf("reached again after %v", time.Since(start))
	if e := f.read(s, testKey); string(e.Value) != "second" {
		t.Errorf("read %+v; want the write whose answer was lost", e)
	}
	if all := lost.All(); !errors.Is(all[0], errSilent) {
		t.Errorf("lost %v; want it to be our own doing", all)
	}
}

// TestPings: a follower asks for nothing, and must find out all the same.
func TestPings(t *testing.T) { inBubble(t, pings) }

func pings(t *testing.T) {
	f := newFixture(t)
	s, first, lost := twoWays(t, f)
	start := time.Now()
	first.Cut()
	eventually(t, "the loss is noticed", func() bool { return len(lost.All()) > 0 })
	if err := lost.All()[0]; !errors.Is(err, nats.ErrStaleConnection) {
		t.Errorf("lost because of %v", err)
	}
	eventually(t, "the other way is taken", s.own.nc.IsConnected)
	t.Logf("connected again after %v", time.Since(start))
}

// TestSlowAnswers: a stream without a leader answers nobody, and another connection would not help.
func TestSlowAnswers(t *testing.T) { inBubble(t, slowAnswers) }

func slowAnswers(t *testing.T) {
	server := startServer(t, withoutJetStream)
	responder := connect(t, server.ClientURL())
	release := make(chan chan struct{}, 100) // of those who asked, in turn
	_, err := responder.Subscribe("$JS.API.STREAM.INFO.KV_B", func(m *nats.Msg) {
		go func() {
			wait := make(chan struct{})
			release <- wait
			<-wait
			_ = m.Respond([]byte(`{"config":{"subjects":["$KV.B.>"]}}`))
		}()
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := responder.Flush(); err != nil {
		t.Fatal(err)
	}
	js := newJetStream(t, connect(t, server.ClientURL()))
	go func() {
		for wait := range release {
			time.Sleep(2 * suspicious) // long enough to be doubted
			close(wait)
		}
	}()
	defer close(release)
	s := openStore(t, js, "B", OwnConnection())
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
func TestBusyServer(t *testing.T) { inBubble(t, busyServer) }

func busyServer(t *testing.T) {
	f := newFixture(t)
	s, first, lost := twoWays(t, f, natstest.Unpinged)
	first.Cut()
	k := s.own
	k.mu.Lock()
	k.asking, k.way = true, pongWithin/2 // so that it has patience for a while
	k.mu.Unlock()
	asked := make(chan struct{})
	k.tasks.Go(func() { k.ask(); close(asked) })
	for busy := true; busy; {
		select {
		case <-asked:
			busy = false
		case <-time.After(pongWithin / 10):
			k.complaint(errors.New("anything"), "_INBOX")
		}
	}
	k.tasks.Wait()
	if n := len(lost.All()); n > 0 || k.asking {
		t.Errorf("%d losses, asking %v; want the connection to be kept", n, k.asking)
	}
	eventually(t, "silence is no life", func() bool {
		k.doubt()
		return len(lost.All()) > 0 && readable(s)
	})
}

// TestCallersEnds: that a caller had little time, or left, says nothing about the connection.
func TestCallersEnds(t *testing.T) { inBubble(t, callersEnds) }

func callersEnds(t *testing.T) {
	f := newFixture(t)
	s, first, lost := twoWays(t, f, natstest.Unpinged)
	first.Cut()
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
	if s.own.reads.age() > 0 || s.own.asking || len(lost.All()) > 0 {
		t.Errorf("failing for %v, asking %v, lost %v; want the connection not to be doubted", s.own.reads.age(), s.own.asking, lost.All())
	}
}

// TestVanishedRequest: what a stream without a leader does not answer in time it never will, and there is time for more tries.
func TestVanishedRequest(t *testing.T) {
	for what, call := range map[string]func(t *testing.T, s *Store) error{
		"read": func(t *testing.T, s *Store) error { _, err := s.Read(testContext(t), testKey); return err },
		"write": func(t *testing.T, s *Store) error {
			_, err := s.CompareAndSwap(testContext(t), testKey, "1", []byte("v"))
			return err
		},
	} {
		t.Run(what, func(t *testing.T) { inBubble(t, func(t *testing.T) { vanishedRequest(t, call) }) })
	}
}

func vanishedRequest(t *testing.T, call func(t *testing.T, s *Store) error) {
	server := startServer(t, withoutJetStream)
	nc := connect(t, server.ClientURL())
	hearer := connect(t, server.ClientURL())
	if _, err := hearer.SubscribeSync(">"); err != nil {
		t.Fatal(err)
	}
	if err := hearer.Flush(); err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	err := call(t, newStore(newBucket(newJetStream(t, nc), "B")))
	if d := time.Since(start); !errors.Is(err, errUnanswered) || outcomeOf(err) != open || d > 3*time.Second {
		t.Errorf("%v after %v; want an error that leaves it open, in time", err, d)
	}
}

// TestPulse: where others like it are answered a request may wait, since thousands of elections wait for each other.
func TestPulse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p pulse
		began := time.Now().Add(-time.Minute)
		if d := p.quiet(began); d != time.Minute {
			t.Errorf("without any answer it was quiet for %v", d)
		}
		p.beat()
		time.Sleep(time.Second)
		if d := p.quiet(began); d != time.Second {
			t.Errorf("a second after an answer it was quiet for %v", d)
		}
		if d := p.quiet(time.Now()); d != 0 {
			t.Errorf("from now on it was quiet for %v", d)
		}
	})
}

// TestReadsQueue: thousands of followers that want to read must not stand in the server's queue before the leaders' renewals.
func TestReadsQueue(t *testing.T) { inBubble(t, readsQueue) }

func readsQueue(t *testing.T) {
	server := startServer(t, withoutJetStream)
	hearer := connect(t, server.ClientURL())
	asked := make(chan *nats.Msg, 2*readsAtOnce)
	if _, err := hearer.ChanSubscribe(">", asked); err != nil {
		t.Fatal(err)
	}
	if err := hearer.Flush(); err != nil {
		t.Fatal(err)
	}
	b := newBucket(newJetStream(t, connect(t, server.ClientURL())), "B")
	later := time.Now().Add(time.Hour)
	b.pulses[reading].last.Store(&later) // or a read would be given up, and another one sent
	s := newStore(b)
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
	select {
	case m := <-asked:
		if !strings.Contains(m.Subject, getMessage) {
			t.Errorf("asked on %s", m.Subject)
		}
	case <-testContext(t).Done():
		t.Error("after those who have left nobody may read")
	}
}

// TestBorrowedIsNotTouched: neither handlers nor options nor the connection itself, whatever happens to it.
func TestBorrowedIsNotTouched(t *testing.T) { inBubble(t, borrowedIsNotTouched) }

func borrowedIsNotTouched(t *testing.T) {
	f := newFixture(t)
	p := natstest.StartProxy(t, f.server.ClientURL())
	var lost natstest.Errors
	nc := connect(t, p.URL(), lost.OfLosses(), natstest.Unpinged, nats.Name("theirs"))
	before, handlers := nc.Opts, handlersOf(nc)
	clients := f.server.NumClients()
	s := openStore(t, newJetStream(t, nc), f.kv.Bucket(), Create())
	h := watchAll(t, s, testKey)
	h.await(t, versionOf(f.put(testKey, "v")))
	p.Cut()
	ctx, cancel := context.WithTimeout(t.Context(), suspicious+pongWithin+suspicious)
	defer cancel()
	if _, err := s.Read(ctx, testKey); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a read without an answer: %v; want it to end with its context", err)
	}
	s.cells.(*bucket).keep.astray()
	if n := nc.Stats().Reconnects; n != 0 || len(lost.All()) != 0 || !nc.IsConnected() {
		t.Errorf("%d reconnects, lost %v", n, lost.All())
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
