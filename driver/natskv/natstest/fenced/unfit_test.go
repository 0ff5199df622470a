//go:build integration

package fenced_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/tenure-go/tenure"
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

// standIn gives a test's answers for a stream. A cluster may answer like that while two servers
// lead the stream for a moment.
type standIn struct {
	*scene
	info string

	mu      sync.Mutex
	next    uint64
	last    map[string]*nats.Msg
	at      map[string]uint64
	answers []string // to the messages that are not the fence's, first to last
	ids     []string // the IDs of these messages
}

const replicatedInfo = `{"created":"2026-11-21T10:00:00Z","config":{"subjects":["payments.>"],"num_replicas":3,"metadata":{"_nats.level":"1"}}}`

func newStandIn(t *testing.T, info string, answers ...string) *standIn {
	t.Helper()
	s := natstest.StartServer(t, natstest.WithoutJetStream)
	in := &standIn{
		scene: &scene{t, connect(t, s), deposed.NewElection(t, "billing"), jetstream.StreamConfig{Name: "PAYMENTS"}},
		info:  info, last: map[string]*nats.Msg{}, at: map[string]uint64{}, answers: answers,
	}
	nc := connect(t, s).Conn()
	for subject, answer := range map[string]func(*nats.Msg) string{
		"$JS.API.STREAM.INFO.PAYMENTS":    func(*nats.Msg) string { return in.info },
		"$JS.API.STREAM.MSG.GET.PAYMENTS": in.get,
		"payments.>":                      in.take,
	} {
		if _, err := nc.Subscribe(subject, func(m *nats.Msg) { _ = m.Respond([]byte(answer(m))) }); err != nil {
			t.Fatal(err)
		}
	}
	must(t, nc.Flush())
	return in
}

func (in *standIn) get(m *nats.Msg) string {
	in.mu.Lock()
	defer in.mu.Unlock()
	var q struct {
		Subject  string `json:"last_by_subj"`
		Sequence uint64 `json:"seq"`
	}
	_ = json.Unmarshal(m.Data, &q)
	for subject, at := range in.at {
		if at == q.Sequence {
			q.Subject = subject
		}
	}
	last := in.last[q.Subject]
	if last == nil {
		return `{"error":{"code":404,"err_code":10037,"description":"no message found"}}`
	}
	header := "NATS/1.0\r\n"
	for k, v := range last.Header {
		header += k + ": " + v[0] + "\r\n"
	}
	encoded, _ := json.Marshal(map[string]any{"message": map[string]any{"subject": q.Subject, "seq": in.at[q.Subject], "hdrs": []byte(header + "\r\n")}})
	return string(encoded)
}

func (in *standIn) take(m *nats.Msg) string {
	in.mu.Lock()
	defer in.mu.Unlock()
	if strings.HasPrefix(m.Subject, fence) {
		return in.keep(m)
	}
	in.ids = append(in.ids, m.Header.Get(jetstream.MsgIDHeader))
	answer := in.answers[0]
	in.answers = in.answers[1:]
	return answer
}

func (in *standIn) keep(m *nats.Msg) string {
	in.next++
	in.last[m.Subject], in.at[m.Subject] = m, in.next
	return fmt.Sprintf(`{"stream":"PAYMENTS","seq":%d}`, in.next)
}

// supersede puts messages of a newer term in the fence.
func (in *standIn) supersede() {
	in.mu.Lock()
	defer in.mu.Unlock()
	for subject, m := range in.last {
		in.keep(&nats.Msg{Subject: subject, Header: nats.Header{fenced.Header: {"9000"}, fenced.FenceHeader: m.Header[fenced.FenceHeader]}})
	}
}

const (
	stored    = `{"stream":"PAYMENTS","seq":100}`
	duplicate = `{"stream":"PAYMENTS","seq":100,"duplicate":true}`
	busy      = `{"error":{"code":400,"err_code":10164,"description":"wrong last sequence"}}`
	sameID    = `{"error":{"code":409,"err_code":10158,"description":"duplicate message id is in process"}}`
	stale     = `{"error":{"code":400,"err_code":10071,"description":"wrong last sequence: 0"}}`
	knows     = `{"error":{"code":400,"err_code":10071,"description":"wrong last sequence: 99"}}`
	full      = `{"error":{"code":503,"err_code":10077,"description":"maximum messages exceeded"}}`
	broken    = `{"error":{"code":400,"err_code":10172,"description":"message counter is broken"}}`
	tooLarge  = `{"error":{"code":400,"err_code":10054,"description":"message size exceeds maximum allowed"}}`
)

// TestAnswers: a server's answer to a message, the outcome, and how often the message is sent.
func TestAnswers(t *testing.T) {
	t.Parallel()
	lastSeq := nats.Header{jetstream.ExpectedLastSeqHeader: {"7"}}
	for name, c := range map[string]struct {
		deposed bool // a newer term has taken the fence
		header  nats.Header
		answers []string
		want    error
		not     []error
	}{
		"stored":                                 {false, nil, []string{stored}, nil, nil},
		"busy first":                             {false, nil, []string{busy, sameID, stored}, nil, nil},
		"stored by another server":               {false, nil, []string{busy, duplicate}, nil, nil},
		"refused by one that is behind":          {false, nil, []string{stale, duplicate}, nil, nil},
		"deposed":                                {true, nil, []string{knows}, tenure.ErrLost, []error{fenced.ErrUnknown}},
		"deposed, by one that is behind":         {true, nil, []string{stale, knows}, fenced.ErrFenced, []error{fenced.ErrUnknown}},
		"deposed, but stored before":             {true, nil, []string{stale, duplicate}, nil, nil},
		"the outcome stays unknown":              {false, nil, []string{full}, fenced.ErrUnknown, []error{fenced.ErrFenced}},
		"not understood":                         {false, nil, []string{"what"}, fenced.ErrUnknown, nil},
		"nothing acknowledged":                   {false, nil, []string{"{}"}, fenced.ErrUnknown, nil},
		"busy first, and then refused":           {false, nil, []string{busy, tooLarge}, fenced.ErrUnknown, []error{fenced.ErrFenced}},
		"refused for what one server has":        {false, nil, []string{broken}, fenced.ErrUnknown, []error{fenced.ErrFenced}},
		"refused for the caller's last sequence": {false, lastSeq, []string{stale}, fenced.ErrUnknown, []error{fenced.ErrFenced}},
		"deposed, and refused perhaps for the caller's last sequence": {true, lastSeq, []string{knows}, fenced.ErrUnknown, nil},
		"deposed, and the server says so, too":                        {true, lastSeq, []string{knows}, tenure.ErrLost, nil},
		"refused for another reason":                                  {false, nil, []string{tooLarge}, jetstream.ErrStreamMessageExceedsMaximum, []error{fenced.ErrUnknown, fenced.ErrFenced}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := newStandIn(t, replicatedInfo, c.answers...)
			p := in.elect("a").open()
			if c.deposed {
				in.supersede()
			}
			m := message("x")
			m.Header = c.header
			ack, err := p.Publish(wait.Context(t), m)
			if !errors.Is(err, c.want) {
				t.Errorf("got the error %v, want %v", err, c.want)
			}
			for _, not := range c.not {
				if errors.Is(err, not) {
					t.Errorf("got the error %v, which is also %v", err, not)
				}
			}
			if err == nil && (ack.Duplicate || ack.Sequence != 100) {
				t.Errorf("acknowledged %+v, although no other client has sent this", ack)
			}
			for i, id := range in.ids {
				if id == "" || id != in.ids[0] {
					t.Errorf("sent %d times, with the ids %q", i+1, in.ids)
				}
			}
			if len(in.answers) > 0 {
				t.Errorf("not sent again: %q", in.answers)
			}
		})
	}
}

// TestOldServer: a server that does not know a condition on another subject would check the
// message's own subject instead.
func TestOldServer(t *testing.T) {
	t.Parallel()
	in := newStandIn(t, `{"created":"2026-11-21T10:00:00Z","config":{"subjects":["payments.>"],"metadata":{}}}`)
	_, err := fenced.Open(wait.Context(t), in.elect("a").term, in.js, "PAYMENTS", fence)
	if !errors.Is(err, fenced.ErrUnfit) || !strings.Contains(err.Error(), "2.11") {
		t.Errorf("with an old server: %v", err)
	}
	if len(in.last) > 0 {
		t.Error("something was published all the same")
	}
}
