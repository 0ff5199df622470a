package natstest

import (
	"context"
	"errors"
	"fmt"
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
