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
	store    *Store
	errors   func() []string
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
	var refused []string
	user := connect(t, s.ClientURL(), nats.UserInfo("user", "x"),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
			mu.Lock()
			defer mu.Unlock()
			refused = append(refused, err.Error())
		}))
	return &rightsFixture{
		fixture: f,
		user:    user,
		store:   closedAfter(t, unopened(t, user)),
		errors: func() []string {
			mu.Lock()
			defer mu.Unlock()
			return slices.Clone(refused)
		},
	}
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
func TestUserThatGetsNoAnswers(t *testing.T) { inBubble(t, muted) }

func muted(t *testing.T) {
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

// TestRefusalsOfOtherRequests: the connection is shared. Refusals of the program's other requests
// do not affect this one.
func TestRefusalsOfOtherRequests(t *testing.T) { inBubble(t, othersRefusals) }

func othersRefusals(t *testing.T) {
	f := newRightsFixture(t, append([]string{"slow"}, candidateRights...), "_INBOX.>")
	s := startServer(t, withoutJetStream, func(o *server.Options) {
		o.Users = []*server.User{
			{Username: "all", Password: "x"},
			{Username: "user", Password: "x", Permissions: permissions(candidateRights, "_INBOX.>")},
		}
	})
	responder := connect(t, s.ClientURL(), nats.UserInfo("all", "x"))
	user := connect(t, s.ClientURL(), nats.UserInfo("user", "x"))
	store := unopened(t, user)
	_, err := responder.Subscribe("$KV.B.>", func(m *nats.Msg) {
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
	if _, err := store.CompareAndSwap(wait.Context(t), testKey, "", []byte("v")); err != nil {
		t.Errorf("refusals of other requests count against a swap: %v", err)
	}
	if !errors.Is(user.LastError(), nats.ErrPermissionViolation) {
		t.Errorf("nothing was refused: %v", user.LastError())
	}
}
