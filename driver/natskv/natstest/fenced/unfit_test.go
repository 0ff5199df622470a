//go:build integration

package fenced_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/natskv/fenced"
	"github.com/tenure-go/tenure/driver/natskv/natstest"
	"github.com/tenure-go/tenure/internal/test/deposed"
	"github.com/tenure-go/tenure/internal/test/wait"
)

// TestUnfit: a stream that cannot keep a fence is refused, with a remedy.
func TestUnfit(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*jetstream.StreamConfig)
		says   string // empty: it can keep a fence
	}{
		"elsewhere":       {func(c *jetstream.StreamConfig) { c.Subjects = []string{"payments.debit", "payments.fence"} }, "payments.fence.>"},
		"its own subject": {func(c *jetstream.StreamConfig) { c.Subjects = []string{"payments.debit", "payments.fence.>"} }, ""},
		"stars":           {func(c *jetstream.StreamConfig) { c.Subjects = []string{"payments.debit", "payments.fence.*.*"} }, ""},
		"too few stars":   {func(c *jetstream.StreamConfig) { c.Subjects = []string{"payments.*", "payments.fence.*"} }, "payments.fence.>"},
		"interest":        {func(c *jetstream.StreamConfig) { c.Retention = jetstream.InterestPolicy }, "interest"},
		"work queue":      {func(c *jetstream.StreamConfig) { c.Retention = jetstream.WorkQueuePolicy }, "--allow-rollup"},
		"rolling queue":   {func(c *jetstream.StreamConfig) { c.Retention, c.AllowRollup = jetstream.WorkQueuePolicy, true }, ""},
		"queue with one":  {func(c *jetstream.StreamConfig) { c.Retention, c.MaxMsgsPerSubject = jetstream.WorkQueuePolicy, 1 }, ""},
		"no answers":      {func(c *jetstream.StreamConfig) { c.NoAck = true }, "no_ack"},
		"transformed": {func(c *jetstream.StreamConfig) {
			c.SubjectTransform = &jetstream.SubjectTransformConfig{Source: "payments.>", Destination: "paid.>"}
		}, "transforms"},
		"asynchronous": {func(c *jetstream.StreamConfig) {
			c.PersistMode = jetstream.AsyncPersistMode
		}, "persist_mode"},
		"memory":           {func(c *jetstream.StreamConfig) { c.Storage = jetstream.MemoryStorage }, ""},
		"direct, and TTLs": {func(c *jetstream.StreamConfig) { c.AllowDirect, c.AllowMsgTTL, c.MaxAge = true, true, time.Minute }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t, c.change)
			leader := s.elect("a")
			p, err := fenced.Open(wait.Context(t), leader.term, s.js, "PAYMENTS", fence)
			switch {
			case c.says == "" && err == nil:
				s.publish(p, "one")
				s.expect(leader.wrote("one"))
			case c.says == "":
				t.Error(err)
			case !errors.Is(err, fenced.ErrUnfit) || !strings.Contains(err.Error(), c.says):
				t.Errorf("%v, which does not say %q", err, c.says)
			}
		})
	}
}

// mapped returns a scene in an account that stores a percentage of the fence's messages elsewhere,
// and a function that changes the percentage.
func mapped(t *testing.T, percent uint8) (s *scene, remap func(percent uint8)) {
	t.Helper()
	srv := natstest.StartServer(t)
	remap = func(percent uint8) {
		must(t, srv.GlobalAccount().AddWeightedMappings(fence+".>",
			server.NewMapDest("payments.elsewhere.>", percent), server.NewMapDest(fence+".>", 100-percent)))
	}
	remap(percent)
	return sceneOn(t, srv), remap
}

// TestMapped: an account that maps the subjects of the fence stores its messages where no condition
// finds them.
func TestMapped(t *testing.T) {
	t.Parallel()
	s, _ := mapped(t, 100)
	leader := s.elect("a")
	if _, err := fenced.Open(wait.Context(t), leader.term, s.js, "OTHER", fence); !errors.Is(err, jetstream.ErrStreamNotFound) {
		t.Errorf("a stream that is not there: %v", err)
	}
	_, err := fenced.Open(wait.Context(t), leader.term, s.js, "PAYMENTS", fence)
	if !errors.Is(err, fenced.ErrUnfit) || !strings.Contains(err.Error(), "payments.elsewhere") {
		t.Errorf("got the error %v", err)
	}
}

// TestHalfMapped: where only some of the messages are mapped, as for canaries, a fence is either
// complete or refused.
func TestHalfMapped(t *testing.T) {
	t.Parallel()
	s, remap := mapped(t, 50)
	leader := s.elect("a")
	open := func() error {
		_, err := fenced.Open(wait.Context(t), leader.term, s.js, "PAYMENTS", fence)
		lanes := len(s.subjects(fence + ".>"))
		if err == nil && lanes != 8 || err != nil && !errors.Is(err, fenced.ErrUnfit) {
			t.Errorf("got the error %v, with %d lanes", err, lanes)
		}
		return err
	}
	for range 20 {
		_ = open()
	}
	remap(0)
	if err := open(); err != nil {
		t.Errorf("without the mapping: %v", err)
	}
}

// TestMappedLater: a fence that is restored after its subjects were mapped is refused, too.
func TestMappedLater(t *testing.T) {
	t.Parallel()
	s, remap := mapped(t, 0)
	p := s.elect("a").open()
	s.publish(p, "one")
	remap(100)
	s.purge("0")
	for range 8 {
		if _, err := p.Publish(wait.Context(t), message("two")); err != nil {
			if !errors.Is(err, fenced.ErrUnfit) {
				t.Errorf("got the error %v", err)
			}
			return
		}
	}
	t.Error("no leader has missed a lane")
}

// TestSurvivesMaxAge: where messages may have their own maximum age, the fence has none.
func TestSurvivesMaxAge(t *testing.T) {
	t.Parallel()
	s := newScene(t, func(c *jetstream.StreamConfig) { c.MaxAge, c.AllowMsgTTL = time.Second, true })
	p := s.elect("a").open()
	s.publish(p, "x")
	wait.Until(s, "only the fence is left", func() bool { return s.stream().CachedInfo().State.Msgs == 8 })
	s.publish(p, "y")
	if n := s.stream().CachedInfo().State.LastSeq; n != 10 {
		t.Errorf("the last sequence is %d: the fence was taken again", n)
	}
}

// TestRollUp: where messages may be rolled up, one term's fence replaces the other's.
func TestRollUp(t *testing.T) {
	t.Parallel()
	s := newScene(t, func(c *jetstream.StreamConfig) { c.AllowRollup = true })
	old := s.elect("old")
	old.open()
	old.supplant("next").open()
	if n := s.stream().CachedInfo().State.Msgs; n != 8 {
		t.Errorf("%d messages are in the stream", n)
	}
}

// TestDenied: the error names a missing right.
func TestDenied(t *testing.T) {
	t.Parallel()
	rights := []string{"$JS.API.STREAM.INFO.PAYMENTS", "$JS.API.STREAM.MSG.GET.PAYMENTS", "payments.fence.>", "payments.debit"}
	user := func(name string, allowed ...string) *server.User {
		return &server.User{Username: name, Password: name, Permissions: &server.Permissions{
			Publish:   &server.SubjectPermission{Allow: allowed},
			Subscribe: &server.SubjectPermission{Allow: []string{"_INBOX.>"}},
		}}
	}
	srv := natstest.StartServer(t, func(o *server.Options) {
		o.NoAuthUser = "all"
		o.Users = []*server.User{{Username: "all", Password: "all"}, user("leader", rights...)}
		for i := range rights {
			o.Users = append(o.Users, user(rights[i], append(append([]string{}, rights[:i]...), rights[i+1:]...)...))
		}
	})
	s := sceneOn(t, srv)
	leader := s.elect("a")
	publishAs := func(name string) error {
		p, err := fenced.Open(wait.Context(t), leader.term, connect(t, srv, nats.UserInfo(name, name)), "PAYMENTS", fence)
		if err != nil {
			return err
		}
		_, err = p.Publish(wait.Context(t), message("x"))
		return err
	}
	for i, right := range rights {
		if i == 2 {
			must(t, s.stream().Purge(wait.Context(t))) // otherwise the fence would be found intact
		}
		err := publishAs(right)
		if !errors.Is(err, driver.ErrDenied) || !strings.Contains(err.Error(), strings.TrimSuffix(right, ">")) || errors.Is(err, fenced.ErrUnknown) {
			t.Errorf("without %s: %v", right, err)
		}
	}
	must(t, publishAs("leader"))
}

// TestDeniedInDomain: a server in the domain checks rights after it has removed the domain from the
// subject.
func TestDeniedInDomain(t *testing.T) {
	t.Parallel()
	srv := natstest.StartServer(t, func(o *server.Options) {
		o.JetStreamDomain = "hub"
		o.Users = []*server.User{{Username: "user", Password: "user", Permissions: &server.Permissions{
			Publish:   &server.SubjectPermission{Allow: []string{"$JS.hub.API.>"}},
			Subscribe: &server.SubjectPermission{Allow: []string{"_INBOX.>"}},
		}}}
	})
	js, err := jetstream.NewWithDomain(connect(t, srv, nats.UserInfo("user", "user")).Conn(), "hub")
	must(t, err)
	s := &scene{t, js, deposed.NewElection(t, "billing"), jetstream.StreamConfig{Name: "PAYMENTS"}}
	_, err = fenced.Open(wait.Context(t), s.elect("a").term, js, "PAYMENTS", fence)
	if !errors.Is(err, driver.ErrDenied) || !strings.Contains(err.Error(), "$JS.API.STREAM.INFO.PAYMENTS") {
		t.Errorf("got the error %v", err)
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
