package natskv

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/tenure-go/tenure/driver"
)

// The rights that the package's documentation gives to a candidate and to an observer on bucket B.
var (
	candidateRights = append([]string{"$KV.B.>"}, observerRights...)
	observerRights  = []string{
		"$JS.API.STREAM.MSG.GET.KV_B",
		"$JS.API.STREAM.INFO.KV_B",
		"$JS.API.CONSUMER.CREATE.KV_B.*.$KV.B.>",
		"$JS.FC.KV_B.>",
	}
)

// rightsFixture is a server with bucket B on which a user has some rights, and what the user's connection was told.
type rightsFixture struct {
	*fixture // of the operator
	user     *nats.Conn
	store    *Store
	told     func() []string
}

func newRightsFixture(t *testing.T, publish []string, subscribe ...string) *rightsFixture {
	t.Helper()
	s := startServer(t, func(o *server.Options) {
		o.Users = []*server.User{
			{Username: "all", Password: "x"},
			{Username: "user", Password: "x", Permissions: permissions(publish, subscribe...)},
		}
	})
	nc := connect(t, s.ClientURL(), nats.UserInfo("all", "x"))
	js := newJetStream(t, nc)
	f := &fixture{TB: t, server: s, nc: nc, js: js, kv: addBucket(t, js, named("B"))}
	var mu sync.Mutex
	var told []string
	user := connect(t, s.ClientURL(), nats.UserInfo("user", "x"),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
			mu.Lock()
			defer mu.Unlock()
			told = append(told, err.Error())
		}))
	return &rightsFixture{
		fixture: f,
		user:    user,
		store:   closedAfter(t, newStore(newBucket(newJetStream(t, user), "B"))),
		told: func() []string {
			mu.Lock()
			defer mu.Unlock()
			return slices.Clone(told)
		},
	}
}

// TestCandidateRights: what the documentation asks for is enough for all that a candidate does, without a single complaint
// of the server, and for more traffic than goes without flow control.
func TestCandidateRights(t *testing.T) {
	t.Parallel()
	f := newRightsFixture(t, candidateRights, "_INBOX.>")
	s := openStore(t, newJetStream(t, f.user), "B")
	h := watchAll(t, s, testKey)
	e := f.read(s, testKey)
	v, err := s.CompareAndSwap(testContext(t), testKey, e.Version, []byte("v"))
	f.must(err)
	h.await(t, v)
	if _, err := s.Inspect(testContext(t), time.Second); err != nil {
		t.Error(err)
	}
	controlled, err := f.nc.SubscribeSync("$JS.FC.>")
	f.must(err)
	large := strings.Repeat("x", driver.MaxValue)
	for range 1000 {
		f.put(testKey, large)
	}
	h.await(t, versionOf(f.put(testKey, "last")))
	if _, err := controlled.NextMsg(patience); err != nil {
		t.Errorf("flow control was not asked for: %v", err)
	}
	if told := f.told(); len(told) > 0 {
		t.Errorf("the server complained: %q", told)
	}
}

// TestObserverRights: an observer sees everything and writes nothing.
func TestObserverRights(t *testing.T) {
	t.Parallel()
	f := newRightsFixture(t, observerRights, "_INBOX.>")
	s := openStore(t, newJetStream(t, f.user), "B")
	h := watchAll(t, s, testKey)
	seq := f.put(testKey, "v")
	h.await(t, versionOf(seq))
	if e := f.read(s, testKey); string(e.Value) != "v" {
		t.Errorf("read: %+v", e)
	}
	f.expectDenied("swap", "$KV.B."+testKey, func(ctx context.Context) error {
		_, err := s.CompareAndSwap(ctx, testKey, versionOf(seq), []byte("mine"))
		return err
	})
	if e := f.read(s, testKey); string(e.Value) != "v" {
		t.Errorf("after a refused swap: %+v", e)
	}
}

// expectDenied requires that a call says quickly which right is missing.
func (f *rightsFixture) expectDenied(what, subject string, call func(context.Context) error) {
	f.Helper()
	start := time.Now()
	err := call(testContext(f))
	if !errors.Is(err, driver.ErrDenied) || !strings.Contains(fmt.Sprint(err), subject) {
		f.Errorf("%s: %v; want to be denied for want of %s", what, err, subject)
	}
	if d := time.Since(start); d > patience/4 {
		f.Errorf("%s: it took %v to be denied", what, d)
	}
}

// TestUsersHandler: what the store finds out by looking, the program is told as ever.
func TestUsersHandler(t *testing.T) {
	t.Parallel()
	f := newRightsFixture(t, observerRights, "_INBOX.>")
	for range 3 { // the second time the connection remembers the first
		f.expectDenied("swap", "grant publish on $KV.B."+testKey, func(ctx context.Context) error {
			_, err := f.store.CompareAndSwap(ctx, testKey, "", []byte("v"))
			return err
		})
	}
	eventually(t, "the user's own handler is called", func() bool { return len(f.told()) >= 3 })
}

// TestMuted: a user who may ask but not be answered. A write may have been applied all the same, so it stays open.
func TestMuted(t *testing.T) {
	t.Parallel()
	f := newRightsFixture(t, candidateRights, "elsewhere.>")
	for range 2 {
		f.expectDenied("read", "subscribe on _INBOX.>", func(ctx context.Context) error {
			_, err := f.store.Read(ctx, testKey)
			return err
		})
	}
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	_, err := f.store.CompareAndSwap(ctx, testKey, "", []byte("v"))
	if outcomeOf(err) != open {
		t.Errorf("a swap that was applied and could not be answered: %v; want an error that leaves it open", err)
	}
}

// TestOthersRefusals: the connection is shared, and what else the program may not do is no business of a request.
func TestOthersRefusals(t *testing.T) {
	t.Parallel()
	f := newRightsFixture(t, append([]string{"slow"}, candidateRights...), "_INBOX.>")
	s := startServer(t, withoutJetStream, func(o *server.Options) {
		o.Users = []*server.User{
			{Username: "all", Password: "x"},
			{Username: "user", Password: "x", Permissions: permissions(candidateRights, "_INBOX.>")},
		}
	})
	responder := connect(t, s.ClientURL(), nats.UserInfo("all", "x"))
	user := connect(t, s.ClientURL(), nats.UserInfo("user", "x"))
	store := newStore(newBucket(newJetStream(t, user), "B"))
	_, err := responder.Subscribe("$KV.B.>", func(m *nats.Msg) {
		for _, forbidden := range []string{"other", "$KV.C.billing", "$KV.B"} {
			_ = user.Publish(forbidden, nil)
		}
		_, _ = user.SubscribeSync("forbidden")
		_ = user.Flush()
		time.Sleep(4 * firstLook) // long enough for a look
		_ = m.Respond([]byte(`{"stream":"KV_B","seq":7}`))
	})
	f.must(err)
	f.must(responder.Flush())
	if _, err := store.CompareAndSwap(testContext(t), testKey, "", []byte("v")); err != nil {
		t.Errorf("refusals of other requests count against a swap: %v", err)
	}
	if !errors.Is(user.LastError(), nats.ErrPermissionViolation) {
		t.Errorf("nothing was refused: %v", user.LastError())
	}
}

// TestOldRefusal: the connection remembers a refusal from before the right was granted.
func TestOldRefusal(t *testing.T) {
	old := fmt.Errorf("%w: Permissions Violation for Publish to %q", nats.ErrPermissionViolation, "$KV.B.billing")
	again := fmt.Errorf("%w: Permissions Violation for Publish to %q", nats.ErrPermissionViolation, "$KV.B.billing")
	longer := fmt.Errorf("%w: Permissions Violation for Publish to %q", nats.ErrPermissionViolation, "$KV.B.billing.eu")
	r := &lookout{nc: &nats.Conn{}, before: old, subjects: []string{"$KV.B.billing"}}
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

// TestEndAfterAWrite: a connection that ends because the user has expired may have carried the write before.
func TestEndAfterAWrite(t *testing.T) {
	for reading, want := range map[bool]outcome{true: forbidden, false: open} {
		l := &lookout{reading: reading}
		if got := outcomeOf(l.sent(closed(nats.ErrAuthExpired))); got != want {
			t.Errorf("reading %v: %s; want %s", reading, got, want)
		}
	}
}

// TestExpiredUser: a server ends the connection of a user whom it does not know any more.
func TestExpiredUser(t *testing.T) {
	for _, c := range []struct {
		last error
		want outcome
	}{
		{nats.ErrAuthorization, forbidden},
		{nats.ErrAuthExpired, forbidden},
		{nats.ErrAuthRevoked, forbidden},
		{nats.ErrAccountAuthExpired, forbidden},
		{nats.ErrStaleConnection, open},
		{nil, open},
	} {
		if got := outcomeOf(closed(c.last)); got != c.want {
			t.Errorf("a connection closed with %v: %s; want %s", c.last, got, c.want)
		}
	}
}
