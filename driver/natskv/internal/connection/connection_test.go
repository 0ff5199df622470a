package connection

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/natskv/internal/test/natsnet"
	"github.com/tenure-go/tenure/internal/test/wait"
)

func TestAPIPrefix(t *testing.T) {
	for _, c := range []struct {
		options jetstream.JetStreamOptions
		want    string
	}{
		{jetstream.JetStreamOptions{}, "$JS.API."},
		{jetstream.JetStreamOptions{Domain: "hub"}, "$JS.hub.API."},
		{jetstream.JetStreamOptions{APIPrefix: "js.from.other"}, "js.from.other."},
		{jetstream.JetStreamOptions{APIPrefix: "js.from.other."}, "js.from.other."},
	} {
		if got := apiPrefix(c.options); got != c.want {
			t.Errorf("%+v: %s; want %s", c.options, got, c.want)
		}
	}
}

// If a client is not admitted again, the error has the server's reason. The text does not decide
// the kind of the error.
func TestOfflineQuotesTheServer(t *testing.T) {
	last := nats.ErrAuthorization
	err := offline(nats.RECONNECTING, last)
	if !errors.Is(err, ErrOffline) || errors.Is(err, last) || !strings.Contains(err.Error(), last.Error()) {
		t.Errorf("got %v", err)
	}
	if err := offline(nats.RECONNECTING, nil); !errors.Is(err, ErrOffline) || !errors.Is(err, driver.ErrConnecting) {
		t.Errorf("got %v", err)
	}
}

// TestOwnKeepsThePrefix: the requests of an own connection use the prefix of the given context.
func TestOwnKeepsThePrefix(t *testing.T) {
	nc := natsnet.Connect(t, server(t, 0))
	for _, make := range []func() (jetstream.JetStream, error){
		func() (jetstream.JetStream, error) { return jetstream.NewWithDomain(nc, "hub") },
		func() (jetstream.JetStream, error) { return jetstream.NewWithAPIPrefix(nc, "$JS.hub.API") },
	} {
		js, err := make()
		if err != nil {
			t.Fatal(err)
		}
		c, err := Own(js, nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Close)
		if got := c.API(); got != "$JS.hub.API." {
			t.Errorf("asks on %s", got)
		}
	}
}

// TestSettings: the own connection keeps the options for the servers and the user. It does not keep
// the handlers, because they would get events of a connection that the program does not know.
func TestSettings(t *testing.T) {
	handler := func(*nats.Conn) {}
	of := nats.GetDefaultOptions()
	for _, set := range []nats.Option{
		nats.Name("billing"), nats.UserInfo("user", "x"), nats.CustomInboxPrefix("_MINE"), nats.Timeout(7 * time.Second),
		nats.Secure(&tls.Config{ServerName: "store", MinVersion: tls.VersionTLS13}), nats.DontRandomize(),
		nats.ClosedHandler(handler), nats.ConnectHandler(handler), nats.ReconnectHandler(handler), nats.LameDuckModeHandler(handler),
		nats.DiscoveredServersHandler(handler), nats.DisconnectErrHandler(func(*nats.Conn, error) {}),
		nats.DisconnectHandler(handler), nats.ReconnectErrHandler(func(*nats.Conn, error) {}),
		nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}), nats.RetryOnFailedConnect(true), nats.NoReconnect(),
		nats.UserJWT(func() (string, error) { return "", nil }, func([]byte) ([]byte, error) { return nil, nil }),
	} {
		if err := set(&of); err != nil {
			t.Fatal(err)
		}
	}
	of.Servers = []string{"nats://a:4222", "nats://b:4222"}
	got, err := settings(of, nil)
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

// TestOldRefusal: the connection remembers a refusal from before the right was granted.
func TestOldRefusal(t *testing.T) {
	old := fmt.Errorf("%w: Permissions Violation for Publish to %q", nats.ErrPermissionViolation, "$KV.B.billing")
	again := fmt.Errorf("%w: Permissions Violation for Publish to %q", nats.ErrPermissionViolation, "$KV.B.billing")
	longer := fmt.Errorf("%w: Permissions Violation for Publish to %q", nats.ErrPermissionViolation, "$KV.B.billing.eu")
	r := &requestMonitor{nc: &nats.Conn{}, before: old, write: true, subjects: []string{"$KV.B.billing"}}
	for _, c := range []struct {
		err  error
		want bool
		why  string
	}{
		{nil, false, "nothing happened"},
		{old, false, "it was there before the request"},
		{again, true, "it came after the request"},
		{longer, false, "it is about another key"},
		{errors.New(again.Error()), false, "it is no refusal"},
	} {
		if got := r.refused(c.err) != nil; got != c.want {
			t.Errorf("%v: refused %v; want %v: %s", c.err, got, c.want, c.why)
		}
	}
}

// TestWriteMayHaveBeenSent: a connection that ends because its user has expired may have sent the
// write before. So may one that broke between the check and the request, when the library's error
// speaks of a buffer.
func TestWriteMayHaveBeenSent(t *testing.T) {
	for write, want := range map[bool]bool{true: false, false: true} {
		r := &requestMonitor{write: write, ctx: t.Context()}
		if err := r.unsent(closed(nats.ErrAuthExpired)); err == nil || errors.Is(err, driver.ErrDenied) != want {
			t.Errorf("write %v: %v; want denied %v", write, err, want)
		}
		if err := r.explain(nats.ErrReconnectBufExceeded); errors.Is(err, driver.ErrConnecting) != want {
			t.Errorf("write %v: %v; want not sent %v", write, err, want)
		}
	}
}

// TestReconnected: a connection may be back before a check, and bring an answer. That answer may
// come from another server, even of another cluster.
func TestReconnected(t *testing.T) {
	nc := natsnet.Connect(t, natsnet.Play(t, nil))
	r := &requestMonitor{nc: nc, number: nc.Stats().Reconnects}
	for _, c := range []struct {
		when string
		look func() error
	}{
		{"while the request waits", r.reason},
		{"after the answer", func() error { return r.afterAnswer(nil) }},
	} {
		if err := c.look(); err != nil {
			t.Errorf("%s, with the connection of the request: %v", c.when, err)
		}
		r.number++
		if err := c.look(); !errors.Is(err, ErrLost) {
			t.Errorf("%s, with another connection than that of the request: %v; want an error that it was lost", c.when, err)
		}
		r.number--
	}
}

// TestExpiredUser: a server ends the connection of a user that it no longer knows.
func TestExpiredUser(t *testing.T) {
	for _, c := range []struct {
		last   error
		denied bool
	}{
		{nats.ErrAuthorization, true},
		{nats.ErrAuthExpired, true},
		{nats.ErrAuthRevoked, true},
		{nats.ErrAccountAuthExpired, true},
		{nats.ErrStaleConnection, false},
		{nil, false},
	} {
		if err := closed(c.last); err == nil || errors.Is(err, driver.ErrDenied) != c.denied {
			t.Errorf("a connection closed with %v: %v; want denied %v", c.last, err, c.denied)
		}
	}
}

// question is a subject on which the servers of these tests answer.
const question = "question"

// server plays a server that answers every request after a delay, and returns its URL.
func server(t *testing.T, delay time.Duration) string {
	t.Helper()
	return natsnet.Play(t, func(*nats.Msg) []byte {
		time.Sleep(delay)
		return []byte(`{}`)
	})
}

func (c *Conn) ask(ctx context.Context) error {
	_, err := c.Request(ctx, c.Number(), &nats.Msg{Subject: question}, Read)
	return err
}

func reaches(t *testing.T, c *Conn) bool { return c.ask(wait.Context(t)) == nil }

func own(t *testing.T, given *nats.Conn, opts ...nats.Option) *Conn {
	t.Helper()
	c, err := Own(natsnet.JetStream(t, given), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// twoWays returns an own connection that knows two addresses of one server, and uses the first.
func twoWays(t *testing.T, opts ...nats.Option) (c *Conn, first *natsnet.Proxy, lost *natsnet.Errors) {
	t.Helper()
	given, first := natsnet.TwoWays(t, server(t, 0))
	lost = &natsnet.Errors{}
	c = own(t, given, append([]nats.Option{lost.OfLosses(), nats.IgnoreDiscoveredServers()}, opts...)...)
	if url := c.nc.ConnectedUrl(); url != first.URL() || len(lost.All()) > 0 {
		t.Fatalf("connected to %s, lost %v; want %s", url, lost.All(), first.URL())
	}
	return c, first, lost
}

// TestStrandedServerIsLeft: a server that has lost the rest of its cluster only gives signs of
// life. The store leaves it, and leaves it earlier if the server reports the reason.
func TestStrandedServerIsLeft(t *testing.T) {
	answer := func(text string) *nats.Msg { return &nats.Msg{Data: []byte(text)} }
	silent := func(s *supervisor, p Purpose) {
		s.unanswered(time.Now().Add(-suspicious), p, context.DeadlineExceeded)
	}
	for _, c := range []struct {
		name  string
		vain  func(s *supervisor)
		after time.Duration // 0: never
	}{
		{"a write without an answer", func(s *supervisor) { silent(s, Write) }, silentFor},
		{"a read without an answer", func(s *supervisor) { silent(s, Read) }, silentFor},
		{"no responder", func(s *supervisor) { s.unanswered(time.Now(), Read, nats.ErrNoResponders) }, explainedFor},
		{"not available", func(s *supervisor) { s.answered(answer(`{"error":{"code":503,"err_code":10008}}`), Read) }, explainedFor},
		{"the last write is under way", func(s *supervisor) { s.answered(answer(`{"error":{"code":400,"err_code":10164}}`), Write) }, explainedFor},
		{"writes fail and reads succeed", func(s *supervisor) {
			s.answered(answer(`{"error":{"code":400,"err_code":10158}}`), Write)
			s.answered(answer(`{"message":{}}`), Read)
		}, explainedFor},
		{"a write without an answer, then only reads", func(s *supervisor) {
			s.mu.Lock()
			begun := s.writes.ongoing()
			s.mu.Unlock()
			if !begun {
				silent(s, Write)
			}
			s.answered(answer(`{"error":{"code":503,"err_code":10008}}`), Read)
		}, explainedFor},
		{"a write without an answer, then refused", func(s *supervisor) {
			silent(s, Write)
			s.answered(answer(`{"error":{"code":400,"err_code":10071}}`), Write)
		}, explainedFor},
		{"the bucket is described, and cannot be read", func(s *supervisor) {
			s.answered(answer(`{"error":{"code":503,"err_code":10008}}`), Read)
			s.answered(answer(`{"config":{}}`), Other)
		}, explainedFor},
		{"an ordinary conflict", func(s *supervisor) { s.answered(answer(`{"error":{"code":400,"err_code":10071}}`), Write) }, 0},
		{"short contexts", func(s *supervisor) { s.unanswered(time.Now(), Read, context.DeadlineExceeded) }, 0},
		{"denied", func(s *supervisor) { s.unanswered(time.Now().Add(-time.Hour), Read, driver.ErrDenied) }, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			natsnet.InBubble(t, func(t *testing.T) { stranded(t, c.vain, c.after) })
		})
	}
}

func stranded(t *testing.T, vain func(s *supervisor), after time.Duration) {
	c, _, lost := twoWays(t, natsnet.Unpinged)
	s := c.supervisor
	failed := func(since time.Duration) {
		vain(s)
		s.mu.Lock()
		for _, o := range []*outage{&s.reads, &s.writes} {
			if !o.since.IsZero() {
				o.since = time.Now().Add(-since)
			}
		}
		s.mu.Unlock()
		vain(s)
		s.tasks.Wait()
	}
	failed(explainedFor / 2)
	// After that all is well.
	s.answered(&nats.Msg{Data: []byte(`{"stream":"KV_B","seq":1}`)}, Write)
	earliest := time.Now().Add(-suspicious)
	vain(s)
	s.tasks.Wait()
	for _, o := range []outage{s.reads, s.writes} {
		if !o.since.IsZero() && o.since.Before(earliest) {
			t.Errorf("after a success the outage is of %v before that", earliest.Sub(o.since))
		}
	}
	failed(max(after, explainedFor) - explainedFor/2)
	if c.Number() > 0 {
		t.Fatal("it moved too early")
	}
	failed(max(after, explainedFor))
	if after == 0 {
		if c.Number() > 0 || len(lost.All()) > 0 {
			t.Error("it moved for no reason")
		}
		return
	}
	wait.Until(t, "it moves on", func() bool { return len(lost.All()) > 0 && reaches(t, c) })
}

// TestReconnectsAreRare: where another connection does not help, reconnects must not make things
// worse. There are about as many in the next minute as in the first seconds.
func TestReconnectsAreRare(t *testing.T) { synctest.Test(t, reconnectsAreRare) }

func reconnectsAreRare(t *testing.T) {
	for _, c := range []struct{ outage, pause time.Duration }{
		{0, time.Second}, {8 * time.Second, time.Second}, {20 * time.Second, 2500 * time.Millisecond}, {time.Hour, 30 * time.Second},
	} {
		s := &supervisor{}
		if c.outage > 0 {
			s.reads.add(time.Now().Add(-c.outage), true)
		}
		if d := s.pause(); d != c.pause {
			t.Errorf("after an outage of %v the pause is %v; want %v", c.outage, d, c.pause)
		}
		s.replaced = time.Now().Add(1 - c.pause)
		early := s.tooEarly()
		s.replaced = time.Now().Add(-c.pause)
		if !early || s.tooEarly() {
			t.Errorf("after an outage of %v: early %v, after the pause %v", c.outage, early, s.tooEarly())
		}
	}
}

// TestFarServer: a sign of life from a distant server takes long.
func TestFarServer(t *testing.T) {
	s := &supervisor{roundTrip: 700 * time.Millisecond}
	if d := s.atLeast(pongWithin); d != 2800*time.Millisecond {
		t.Errorf("waits %v for a far server", d)
	}
	if s.roundTrip = time.Millisecond; s.atLeast(pongWithin) != pongWithin {
		t.Errorf("waits %v for a near server", s.atLeast(pongWithin))
	}
}

// TestPings: a follower sends no requests, and must notice a silent server all the same.
func TestPings(t *testing.T) { natsnet.InBubble(t, pings) }

func pings(t *testing.T) {
	c, first, lost := twoWays(t)
	first.Cut()
	wait.Until(t, "the loss is noticed", func() bool { return len(lost.All()) > 0 })
	if err := lost.All()[0]; !errors.Is(err, nats.ErrStaleConnection) {
		t.Errorf("lost because of %v", err)
	}
	// a client that connects again holds a lock, and time stands still while a test waits for that
	time.Sleep(time.Minute)
	if n := c.Number(); n != 1 || !c.nc.IsConnected() {
		t.Errorf("%d reconnects, connected %v; want the other way", n, c.nc.IsConnected())
	}
}

// TestSlowAnswers: a stream without a leader answers no request, and another connection would not
// help.
func TestSlowAnswers(t *testing.T) { natsnet.InBubble(t, slowAnswers) }

func slowAnswers(t *testing.T) {
	c := own(t, natsnet.Connect(t, server(t, 2*suspicious))) // long enough to be doubted
	s := c.supervisor
	s.mu.Lock()
	s.roundTrip = -1
	s.mu.Unlock()
	if err := c.ask(wait.Context(t)); err != nil {
		t.Errorf("a slow answer: %v", err)
	}
	wait.Until(t, "the server has given a sign of life", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return !s.busy && s.roundTrip >= 0
	})
	if n := c.Number(); n != 0 {
		t.Errorf("%d reconnects for the sake of a slow answer", n)
	}
}

// TestBusyServer: a pong may have to wait behind thousands of answers. A server that sends those is
// alive.
func TestBusyServer(t *testing.T) { natsnet.InBubble(t, busyServer) }

func busyServer(t *testing.T) {
	c, first, lost := twoWays(t, natsnet.Unpinged)
	first.Cut()
	s := c.supervisor
	s.mu.Lock()
	s.busy, s.roundTrip = true, pongWithin/2 // so that it waits for a while
	s.mu.Unlock()
	asked := make(chan struct{})
	s.tasks.Go(func() { s.ask(); close(asked) })
	for busy := true; busy; {
		select {
		case <-asked:
			busy = false
		case <-time.After(pongWithin / 10):
			s.complaint(errors.New("anything"), "_INBOX")
		}
	}
	s.tasks.Wait()
	if n := len(lost.All()); n > 0 || s.busy || !s.replaced.IsZero() {
		t.Errorf("%d losses, busy %v, replaced %v; want the connection to be kept", n, s.busy, s.replaced)
	}
	wait.Until(t, "a silent server counts as lost", func() bool {
		s.doubt()
		return len(lost.All()) > 0 && reaches(t, c)
	})
}

// A caller with little time, or one that left, proves nothing about the connection.
func TestImpatientCallersRaiseNoDoubt(t *testing.T) { natsnet.InBubble(t, callersEnds) }

func callersEnds(t *testing.T) {
	c, first, lost := twoWays(t, natsnet.Unpinged)
	first.Cut()
	for range 20 {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
		_ = c.ask(ctx)
		cancel()
		gone, leave := context.WithCancel(t.Context())
		time.AfterFunc(5*time.Millisecond, leave)
		_ = c.ask(gone)
	}
	s := c.supervisor
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.reads.age() > 0 || s.busy || len(lost.All()) > 0 {
		t.Errorf("failing for %v, asking %v, lost %v; want the connection not to be doubted", s.reads.age(), s.busy, lost.All())
	}
}

// TestWriteIsNotSentOverAnotherConnection: the caller has checked the server of one connection, so
// its write must not go over the next connection.
func TestWriteIsNotSentOverAnotherConnection(t *testing.T) {
	c := own(t, natsnet.Connect(t, server(t, 0)))
	for number, want := range map[uint64]error{c.Number(): nil, c.Number() + 1: ErrLost} {
		_, err := c.Request(wait.Context(t), number, &nats.Msg{Subject: question}, Write)
		if !errors.Is(err, want) {
			t.Errorf("over connection %d of %d: %v, want %v", number, c.Number(), err, want)
		}
	}
}

// TestOutage: an old failure does not count for the next one, and a new connection gets its own
// time.
func TestOutage(t *testing.T) { synctest.Test(t, outages) }

func outages(t *testing.T) {
	var o outage
	o.add(time.Now().Add(-time.Minute), false)
	if !tooLong(time.Time{}, o) || tooLong(time.Now(), o) {
		t.Errorf("for an old connection %v, for a new one %v", tooLong(time.Time{}, o), tooLong(time.Now(), o))
	}
	o.last = o.last.Add(-2 * nextOutage)
	o.add(time.Now(), false)
	if tooLong(time.Time{}, o) {
		t.Error("a failure of long ago counts")
	}
}

// TestLastAnswer: while other such requests are answered, a request may wait: thousands of
// elections wait for each other.
func TestLastAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l lastAnswer
		sent := time.Now().Add(-time.Minute)
		if d := l.silence(sent); d != time.Minute {
			t.Errorf("without any answer there was silence for %v", d)
		}
		l.note()
		time.Sleep(time.Second)
		if d := l.silence(sent); d != time.Second {
			t.Errorf("a second after an answer there was silence for %v", d)
		}
		if d := l.silence(time.Now()); d != 0 {
			t.Errorf("from now on there was silence for %v", d)
		}
	})
}

// TestLateRefusalOfAQuestion: a busy server refuses a question when the time for answers is over.
func TestLateRefusalOfAQuestion(t *testing.T) { natsnet.InBubble(t, lateRefusalOfAQuestion) }

func lateRefusalOfAQuestion(t *testing.T) {
	address := natsnet.Inside.Address()
	var played sync.WaitGroup
	t.Cleanup(played.Wait)
	natsnet.Inside.Put(t, address, func() (net.Conn, error) {
		theirs, ours := net.Pipe()
		played.Go(func() { refuseLate(ours) })
		return theirs, nil
	})
	c := own(t, natsnet.Connect(t, "nats://"+address))
	_, err := c.Ask(wait.Context(t), question, nil, 100*time.Millisecond)
	if !errors.Is(err, driver.ErrDenied) {
		t.Errorf("got %v", err)
	}
}

// refuseLate plays a server that answers in order, and takes 300 ms to refuse a question.
func refuseLate(conn net.Conn) {
	defer func() { _ = conn.Close() }()
	answers := make(chan string, 100)
	var written sync.WaitGroup
	defer written.Wait()
	defer close(answers)
	written.Go(func() {
		for text := range answers {
			if strings.HasPrefix(text, "-ERR") {
				time.Sleep(300 * time.Millisecond)
			}
			_, _ = io.WriteString(conn, text)
		}
	})
	answers <- `INFO {"server_id":"late","version":"2.15.2","headers":true,"max_payload":1048576}` + "\r\n"
	for lines := bufio.NewScanner(conn); lines.Scan(); {
		switch word, rest, _ := strings.Cut(lines.Text(), " "); {
		case word == "PING":
			answers <- "PONG\r\n"
		case strings.HasSuffix(word, "PUB") && strings.HasPrefix(rest, question):
			answers <- "-ERR 'Permissions Violation for Publish to \"" + question + "\"'\r\n"
		}
	}
}
