package natstest

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/natskv"
	"github.com/tenure-go/tenure/driver/natskv/internal/connection"
	"github.com/tenure-go/tenure/driver/natskv/internal/identity"
	"github.com/tenure-go/tenure/driver/natskv/internal/test/natsnet"
	"github.com/tenure-go/tenure/internal/test/wait"
)

// TestForcedReconnect: if a request has no answer and the server gives no sign of life, the store
// tries another server. Otherwise the write would fail until its own lease was over.
func TestForcedReconnect(t *testing.T) {
	InBubble(t, forcedReconnect)
}

func forcedReconnect(t *testing.T) {
	f := newFixture(t)
	given, first := natsnet.TwoWays(t, f.server.ClientURL())
	var lost natsnet.Errors
	s := openStore(t, natsnet.JetStream(t, given), f.kv.Bucket(),
		natskv.OwnConnection(lost.OfLosses(), nats.IgnoreDiscoveredServers(), natsnet.Unpinged))
	v, err := s.CompareAndSwap(wait.Context(t), testKey, "", []byte("first"))
	f.must(err)
	first.Cut()
	start := time.Now()
	if _, err := s.CompareAndSwap(wait.Context(t), testKey, v, []byte("second")); !leftOpen(err) {
		t.Errorf("a swap whose connection was given up: %v; want an error that leaves it open", err)
	}
	wait.Until(t, "one request is enough", func() bool { return len(lost.All()) > 0 })
	// The connection is doubted after 300 ms and has 500 ms for a sign of life.
	if d := time.Since(start); d > 900*time.Millisecond {
		t.Errorf("given up only after %v", d)
	}
	wait.Until(t, "the store is reached again", func() bool { return readable(s) })
	t.Logf("reached again after %v", time.Since(start))
	if e := f.read(s, testKey); string(e.Value) != "second" {
		t.Errorf("read %+v; want the write whose answer was lost", e)
	}
	if all := lost.All(); !errors.Is(all[0], connection.ErrSilent) {
		t.Errorf("lost %v; want it to be our own doing", all)
	}
}

// The store never changes the handlers, the options or the connection itself.
func TestBorrowedConnectionIsUnchanged(t *testing.T) { InBubble(t, borrowedIsNotTouched) }

func borrowedIsNotTouched(t *testing.T) {
	f := newFixture(t)
	p := natsnet.StartProxy(t, f.server.ClientURL())
	var lost natsnet.Errors
	nc := natsnet.Connect(t, p.URL(), lost.OfLosses(), natsnet.Unpinged, nats.Name("theirs"))
	before, handlers := nc.Opts, handlersOf(nc)
	clients := f.server.NumClients()
	s := openStore(t, natsnet.JetStream(t, nc), f.kv.Bucket(), natskv.Create())
	h := watchAll(t, s, testKey)
	h.await(t, versionOf(f.put(testKey, "v")))
	p.Cut()
	ctx, cancel := context.WithTimeout(t.Context(), 1100*time.Millisecond)
	defer cancel()
	if _, err := s.Read(ctx, testKey); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a read without an answer: %v; want it to end with its context", err)
	}
	connection.Borrow(natsnet.JetStream(t, nc)).MoveOn()
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

// handlersOf returns the addresses of a connection's handlers.
func handlersOf(nc *nats.Conn) [5]uintptr {
	return [5]uintptr{
		reflect.ValueOf(nc.ErrorHandler()).Pointer(), reflect.ValueOf(nc.DisconnectErrHandler()).Pointer(),
		reflect.ValueOf(nc.ReconnectHandler()).Pointer(), reflect.ValueOf(nc.ClosedHandler()).Pointer(),
		reflect.ValueOf(nc.Opts.CustomReconnectDelayCB).Pointer(),
	}
}

// TestForeignVersion: a version that the store did not return must not become a condition that
// holds.
func TestForeignVersion(t *testing.T) {
	f := newFixture(t)
	for _, v := range []driver.Version{"0", "-1", "1 ", "never", "1e3", "99999999999999999999", "unwritten ", "unwritten x"} {
		if _, err := f.store.CompareAndSwap(wait.Context(t), testKey, v, []byte("v")); !leftOpen(err) {
			t.Errorf("swap from version %q: %v; want an error that is no conflict", v, err)
		}
	}
}

// TestDeletedBucket: reads name the remedy, since the server reports only that a stream is not
// found. A write is sent once; the client library would try twice more after 250 ms each. Another
// stream that listens on the subjects then must not store our records.
func TestDeletedBucket(t *testing.T) {
	f := newFixture(t)
	name := f.kv.Bucket()
	f.must(f.js.DeleteKeyValue(wait.Context(t), name))
	_, err := f.store.Read(wait.Context(t), testKey)
	if err == nil || !strings.Contains(err.Error(), "the bucket is gone") || !strings.Contains(err.Error(), "nats kv add "+name) {
		t.Errorf("read: %v", err)
	}
	before := f.nc.Stats().OutMsgs
	_, err = f.store.CompareAndSwap(wait.Context(t), testKey, "", []byte("v"))
	if !errors.Is(err, nats.ErrNoResponders) || !leftOpen(err) {
		t.Errorf("swap without a stream: %v; want no responders", err)
	}
	if sent := f.nc.Stats().OutMsgs - before; sent != 1 {
		t.Errorf("%d messages were sent for one swap", sent)
	}
	var stranger jetstream.Stream
	wait.Until(t, "the server has removed the bucket and takes a stream", func() bool {
		var err error
		stranger, err = f.js.CreateStream(wait.Context(t), jetstream.StreamConfig{Name: "S", Subjects: []string{"$KV.>"}})
		return err == nil
	})
	if err := failure(f.store.CompareAndSwap(wait.Context(t), testKey, "", []byte("v"))); !leftOpen(err) {
		t.Errorf("swap into another stream: %v; want an error", err)
	}
	info, err := stranger.Info(wait.Context(t))
	f.must(err)
	if info.State.Msgs != 0 {
		t.Errorf("the other stream holds %d of our messages", info.State.Msgs)
	}
}

// member campaigns until the test ends or stop is called.
func (f *fixture) member(t *testing.T, s *natskv.Store, id string, onEvent func(tenure.Event)) (e *tenure.Election, stop func()) {
	e, err := tenure.New(s, testKey, tenure.Config{ID: id, Lease: 5 * time.Second, OnEvent: onEvent})
	f.must(err)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = e.Run(ctx, func(ctx context.Context, _ *tenure.Term) error {
			<-ctx.Done()
			return nil
		})
	}()
	stop = func() {
		cancel()
		<-ended
	}
	t.Cleanup(stop)
	return e, stop
}

// TestGoodTermsAboveTheFloor: a handle that hides its stream sees the bare sequence, while terms of
// the other members are times in microseconds. None of these terms is lost. The last possible term
// is malformed over a handle as well.
func TestGoodTermsAboveTheFloor(t *testing.T) { InBubble(t, goodTermsAboveTheFloor) }

func goodTermsAboveTheFloor(t *testing.T) {
	f := newFixture(t)
	alarms := make(chan tenure.Event, 100)
	first, stop := f.member(t, f.store, "first", nil)
	leads := func(s tenure.Status) bool { return s.State == tenure.StateLeader }
	before, err := first.Wait(wait.Context(t), leads)
	f.must(err)
	bare := closedAfter(t, natskv.FromKeyValue(wrapped{f.kv}))
	second, _ := f.member(t, bare, "second", func(e tenure.Event) {
		if e.Kind == tenure.EventAlarm {
			alarms <- e
		}
	})
	_, err = second.Wait(wait.Context(t), func(s tenure.Status) bool { return s.Leader.ID == "first" })
	f.must(err)
	stop()
	after, err := second.Wait(wait.Context(t), leads)
	f.must(err)
	if after.Term <= before.Term || before.Term < 1<<49 { // the time in a bubble begins in 2000
		t.Errorf("term %d after term %d", after.Term, before.Term)
	}
	if len(alarms) > 0 {
		t.Errorf("alarmed: %v", (<-alarms).Cause)
	}
	f.put(testKey, fmt.Sprintf(`{"leaderID":"x","incarnation":"i","term":%d,"leaseMillis":5000,"nonce":"n"}`, uint64(1<<53-1)))
	if e := <-alarms; !errors.Is(e.Cause, &tenure.StoreError{Kind: driver.Malformed}) {
		t.Errorf("alarmed: %v", e.Cause)
	}
	again, err := second.Wait(wait.Context(t), func(s tenure.Status) bool { return leads(s) && s.Term > after.Term })
	f.must(err)
	if again.Term > after.Term+100 {
		t.Errorf("term %d after term %d", again.Term, after.Term)
	}
}

// These are the rights that the package's documentation gives to a candidate and to an observer on
// bucket B.
var (
	candidateRights = append([]string{"$KV.B.>"}, observerRights...)
	observerRights  = []string{
		"$JS.API.STREAM.MSG.GET.KV_B",
		"$JS.API.STREAM.INFO.KV_B",
		"$JS.API.CONSUMER.CREATE.KV_B.*.$KV.B.>",
		"$JS.FC.KV_B.>",
	}
)

// rightsFixture is a server with bucket B, on which a user has some rights. It collects the errors
// of the user's connection.
type rightsFixture struct {
	*fixture // of the operator
	user     *nats.Conn
	refusals natsnet.Errors
}

func newRightsFixture(t *testing.T, publish []string, subscribe ...string) *rightsFixture {
	t.Helper()
	s := StartServer(t, withUsers(publish, subscribe...))
	nc := natsnet.Connect(t, s.ClientURL(), nats.UserInfo("all", "x"))
	js := natsnet.JetStream(t, nc)
	f := &rightsFixture{fixture: &fixture{TB: t, server: s, nc: nc, js: js, kv: addBucket(t, js, named("B"))}}
	f.user = natsnet.Connect(t, s.ClientURL(), nats.UserInfo("user", "x"), f.refusals.OfServer())
	return f
}

// withUsers adds a user that may do everything, and one that has some rights.
func withUsers(publish []string, subscribe ...string) func(*server.Options) {
	return func(o *server.Options) {
		o.Users = []*server.User{
			{Username: "all", Password: "x"},
			{Username: "user", Password: "x", Permissions: permissions(publish, subscribe...)},
		}
	}
}

// open opens the bucket for the user.
func (f *rightsFixture) open() *natskv.Store {
	f.Helper()
	return openStore(f, natsnet.JetStream(f, f.user), "B")
}

// expectDenied requires an error that names the missing right, and does not report a missing
// answer.
func (f *rightsFixture) expectDenied(what, subject string, call func(context.Context) error) {
	f.Helper()
	err := call(wait.Context(f))
	if !errors.Is(err, driver.ErrDenied) || !strings.Contains(fmt.Sprint(err), subject) {
		f.Errorf("%s: %v; want to be denied for want of %s", what, err, subject)
	}
}

// TestUserThatGetsNoAnswers: a user may send requests but gets no answers. A write may have been
// applied, so its outcome is unknown.
func TestUserThatGetsNoAnswers(t *testing.T) { InBubble(t, muted) }

func muted(t *testing.T) {
	f := newRightsFixture(t, candidateRights, "elsewhere.>")
	conn := connection.Borrow(natsnet.JetStream(t, f.user)) // no bucket can be opened over it
	for range 2 {
		f.expectDenied("read", "subscribe on _INBOX.>", func(ctx context.Context) error {
			return failure(conn.Request(ctx, conn.Number(), nats.NewMsg("$JS.API.STREAM.INFO.KV_B"), connection.Read))
		})
	}
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	_, err := conn.Request(ctx, conn.Number(), &nats.Msg{Subject: "$KV.B." + testKey, Data: []byte("v")}, connection.Write)
	if _, found := f.kv.Get(t.Context(), testKey); !leftOpen(err) || found != nil {
		t.Errorf("a swap that was applied and could not be answered: %v; want an error that leaves it open", err)
	}
}

// TestRefusalsOfOtherRequests: the connection is shared. Refusals of the program's other requests
// do not affect this one.
func TestRefusalsOfOtherRequests(t *testing.T) { InBubble(t, othersRefusals) }

func othersRefusals(t *testing.T) {
	s := StartServer(t, WithoutJetStream, withUsers(candidateRights, "_INBOX.>"))
	responder := natsnet.Connect(t, s.ClientURL(), nats.UserInfo("all", "x"))
	user := natsnet.Connect(t, s.ClientURL(), nats.UserInfo("user", "x"))
	_, err := responder.Subscribe("$JS.API.STREAM.INFO.KV_B", func(m *nats.Msg) {
		_ = m.Respond([]byte(`{"config":{"subjects":["$KV.B.>"]}}`))
	})
	f := &fixture{TB: t}
	f.must(err)
	_, err = responder.Subscribe("$KV.B.>", func(m *nats.Msg) {
		for _, forbidden := range []string{"other", "$KV.C.billing", "$KV.B"} {
			_ = user.Publish(forbidden, nil)
		}
		_, _ = user.SubscribeSync("forbidden")
		_ = user.Flush()
		time.Sleep(12 * time.Millisecond) // long enough for a check
		_ = m.Respond([]byte(`{"stream":"KV_B","seq":7}`))
	})
	f.must(err)
	f.must(responder.Flush())
	store := openStore(t, natsnet.JetStream(t, user), "B")
	if _, err := store.CompareAndSwap(wait.Context(t), testKey, "", []byte("v")); err != nil {
		t.Errorf("refusals of other requests count against a swap: %v", err)
	}
	if !errors.Is(user.LastError(), nats.ErrPermissionViolation) {
		t.Errorf("nothing was refused: %v", user.LastError())
	}
}

// TestCheckWithoutAnswer: silence is not a missing right.
func TestCheckWithoutAnswer(t *testing.T) { InBubble(t, checkWithoutAnswer) }

func checkWithoutAnswer(t *testing.T) {
	f := newFixture(t)
	if err := natskv.FromKeyValue(f.kv).CheckRights(wait.Context(t), testKey); err != nil {
		t.Errorf("over a handle: %v", err)
	}
	f.nc.Close()
	if err := f.store.CheckRights(wait.Context(t), testKey); err == nil || errors.Is(err, driver.ErrDenied) {
		t.Errorf("without a connection: %v", err)
	}
}

// TestCheckRightsChangesNothing: with no setting of the bucket does the check store a message.
func TestCheckRightsChangesNothing(t *testing.T) {
	for name, change := range map[string]func(*jetstream.StreamConfig){
		"as it is":         func(*jetstream.StreamConfig) {},
		"new is discarded": func(c *jetstream.StreamConfig) { c.Discard = jetstream.DiscardNew },
		"old is discarded": func(c *jetstream.StreamConfig) { c.Discard, c.MaxMsgs = jetstream.DiscardOld, 1 },
		"full":             func(c *jetstream.StreamConfig) { c.Discard, c.MaxMsgs = jetstream.DiscardNew, 1 },
		"full for each key": func(c *jetstream.StreamConfig) {
			c.Discard, c.MaxMsgs, c.DiscardNewPerSubject = jetstream.DiscardNew, 3, true
		},
		"a long history": func(c *jetstream.StreamConfig) { c.MaxMsgsPerSubject = 64 },
		"no roll-ups":    func(c *jetstream.StreamConfig) { c.AllowRollup = false },
		"republished": func(c *jetstream.StreamConfig) {
			c.RePublish = &jetstream.RePublish{Source: ">", Destination: "copy.>"}
		},
	} {
		t.Run(name, func(t *testing.T) { InBubble(t, func(t *testing.T) { changesNothing(t, change) }) })
	}
}

func changesNothing(t *testing.T, change func(*jetstream.StreamConfig)) {
	f := newFixture(t)
	f.put(testKey, "x")
	stream, err := f.js.Stream(wait.Context(t), "KV_"+f.kv.Bucket())
	f.must(err)
	config := stream.CachedInfo().Config
	change(&config)
	_, err = f.js.UpdateStream(wait.Context(t), config)
	f.must(err)
	copied, err := f.nc.SubscribeSync("copy.>")
	f.must(err)
	state := func() (s jetstream.StreamState) {
		info, err := stream.Info(wait.Context(t))
		f.must(err)
		return info.State
	}
	before := state()
	for _, key := range []string{testKey, "absent"} {
		if err := f.store.CheckRights(wait.Context(t), key); err != nil {
			t.Errorf("%s: %v", key, err)
		}
	}
	if after := state(); after.LastSeq != before.LastSeq || after.Msgs != before.Msgs || after.Bytes != before.Bytes {
		t.Errorf("the stream was %+v and is %+v", before, after)
	}
	if e := f.read(f.store, testKey); string(e.Value) != "x" {
		t.Errorf("the key holds %q", e.Value)
	}
	f.must(f.nc.Flush())
	if n, _, _ := copied.Pending(); n > 0 {
		t.Errorf("%d messages were copied", n)
	}
}

// twoClusters returns two servers that do not know each other, with a bucket of the same name and
// the same sequences. The store has URLs of both and is connected to the first.
func twoClusters(t *testing.T, opts ...natskv.Option) (s *natskv.Store, first, second *fixture) {
	t.Helper()
	named := func(o *server.Options) { o.ServerName = "n1" }
	var sides []*fixture
	var urls []string
	for range 2 {
		side := StartServer(t, named)
		nc := natsnet.Connect(t, side.ClientURL())
		f := &fixture{TB: t, server: side, nc: nc, js: natsnet.JetStream(t, nc)}
		f.kv = addBucket(t, f.js, func(c *jetstream.KeyValueConfig) { c.Bucket = "ELECTIONS" })
		f.put(testKey, "v")
		sides, urls = append(sides, f), append(urls, side.ClientURL())
		time.Sleep(time.Second) // no two buckets are created at the same time
	}
	nc := natsnet.Connect(t, strings.Join(urls, ","), nats.DontRandomize())
	s = openStore(t, natsnet.JetStream(t, nc), "ELECTIONS", opts...)
	// The store has then known its bucket for longer than clocks may differ.
	time.Sleep(3 * identity.ClockSkew)
	sides[0].read(s, testKey)
	return s, sides[0], sides[1]
}

// TestTwoClusters: with URLs of two clusters, a candidate that loses one must not be elected by the
// other.
func TestTwoClusters(t *testing.T) {
	for name, opts := range map[string][]natskv.Option{"borrowed": nil, "own": {natskv.OwnConnection()}} {
		for _, watched := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, watched %v", name, watched), func(t *testing.T) {
				InBubble(t, func(t *testing.T) { staysWithItsCluster(t, watched, opts) })
			})
		}
	}
}

func staysWithItsCluster(t *testing.T, watched bool, opts []natskv.Option) {
	s, first, second := twoClusters(t, opts...)
	e := first.read(s, testKey)
	h := &pushes{}
	if watched {
		h = watchAll(t, s, testKey)
	}
	restart(t, first.server, func() {
		refusesAll(t, s, e.Version, watched)
		if got, err := second.kv.Get(wait.Context(t), testKey); err != nil || string(got.Value()) != "v" {
			t.Errorf("the other cluster holds %v, %v", got, err)
		}
		for _, e := range h.entries() {
			if e.Lost == nil {
				t.Errorf("an entry of the other cluster was pushed: %+v", e)
			}
		}
	})
	if opts == nil {
		second.server.Shutdown() // no other server takes the client back
	}
	wait.Until(t, "the first cluster is found again", func() bool { return readable(s) })
	v, err := s.CompareAndSwap(wait.Context(t), testKey, e.Version, []byte("mine"))
	first.must(err)
	if watched {
		h.await(t, v)
	}
}

// refusesAll requires that nothing is done on the other cluster, and that the errors explain it. If
// the store has watches, another one asks nothing.
func refusesAll(t *testing.T, s *natskv.Store, last driver.Version, watched bool) {
	t.Helper()
	calls := map[string]func(ctx context.Context) error{
		"swap":    func(ctx context.Context) error { return failure(s.CompareAndSwap(ctx, testKey, last, []byte("mine"))) },
		"read":    func(ctx context.Context) error { return failure(s.Read(ctx, testKey)) },
		"inspect": func(ctx context.Context) error { return failure(s.Inspect(ctx, testLease)) },
	}
	if !watched {
		calls["watch"] = func(ctx context.Context) error { return failure(s.Watch(ctx, testKey, func(driver.Entry) {})) }
	}
	for what, call := range calls {
		wait.Until(t, what+" is refused", func() bool {
			err := call(wait.Context(t))
			if err == nil {
				t.Fatalf("%s was done on the other cluster", what)
			}
			return errors.Is(err, natskv.ErrTwoClusters) && strings.Contains(err.Error(), "restart this process")
		})
	}
}

// atServer returns the findings about the given servers.
func atServer(t *testing.T, s *natskv.Store) []driver.Finding {
	t.Helper()
	found, err := s.Inspect(wait.Context(t), testLease)
	must(t, err)
	var about []driver.Finding
	for _, f := range found {
		if f.Setting == "servers" {
			about = append(about, f)
		}
	}
	return about
}

// TestInspectFindsTwoClusters: at the start the right bucket is not known, and each candidate may
// connect to another one.
func TestInspectFindsTwoClusters(t *testing.T) { InBubble(t, inspectFindsTwoClusters) }

func inspectFindsTwoClusters(t *testing.T) {
	s, _, second := twoClusters(t)
	found := atServer(t, s)
	host := strings.TrimPrefix(second.server.ClientURL(), "nats://")
	if len(found) != 1 || found[0].Severity != driver.Unsafe || !strings.Contains(found[0].Problem, host+", one of the servers given, has another bucket ELECTIONS") {
		t.Errorf("found %v", found)
	}
	second.must(second.js.DeleteKeyValue(wait.Context(t), "ELECTIONS"))
	if found := atServer(t, s); len(found) != 1 || !strings.Contains(found[0].Problem, "has no bucket ELECTIONS") {
		t.Errorf("without the bucket there: %v", found)
	}
	wait.Until(t, "the second cluster has no connections but the test's", func() bool { return second.server.NumClients() == 1 })
}

// TestInspectAsksWithoutJetStream: a server without JetStream belongs to no cluster with JetStream.
func TestInspectAsksWithoutJetStream(t *testing.T) {
	f := newFixture(t)
	other := StartServer(t, WithoutJetStream)
	nc := natsnet.Connect(t, f.server.ClientURL()+","+other.ClientURL(), nats.DontRandomize())
	s := openStore(t, natsnet.JetStream(t, nc), f.kv.Bucket())
	if found := atServer(t, s); len(found) != 1 || !strings.Contains(found[0].Problem, "has no bucket") {
		t.Errorf("found %v", found)
	}
}
