//go:build integration

package fencednats

import (
	"context"
	"crypto/rand"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver/natskv/fenced"
	"github.com/tenure-go/tenure/internal/test/deposed"
	"github.com/tenure-go/tenure/internal/test/wait"
	"github.com/tenure-go/tenure/test/internal/figures"
	"github.com/tenure-go/tenure/test/internal/natsd"
	"github.com/tenure-go/tenure/test/internal/relay"
)

// TestMain lets more tests run in parallel than there are processors, because the tests mostly
// wait.
func TestMain(m *testing.M) {
	natsd.Main()
	if err := flag.Set("test.parallel", "4"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func connect(t testing.TB, url string) jetstream.JetStream {
	t.Helper()
	return natsd.Connect(t, strings.Split(url, ","))
}

// scene is one stream on a server or three, and an election in a store of the test.
type scene struct {
	testing.TB
	cluster  *natsd.Cluster // nil: one server
	url      string         // all of them
	js       jetstream.JetStream
	name     string // of the stream
	election *deposed.Election
}

// onOne returns a scene on its own server.
func onOne(t testing.TB) *scene {
	t.Helper()
	server, err := natsd.Start(t.TempDir())
	must(t, err)
	t.Cleanup(server.Kill)
	return newScene(t, nil, server.URL())
}

// onThree returns a scene on a cluster, which a function of package natsd starts.
func onThree(t testing.TB, start func(dir string) (*natsd.Cluster, error)) *scene {
	t.Helper()
	c, err := start(t.TempDir())
	must(t, err)
	t.Cleanup(c.Kill)
	must(t, c.Ready(wait.Context(t)))
	return newScene(t, c, strings.Join(c.URLs(), ","))
}

func newScene(t testing.TB, c *natsd.Cluster, url string) *scene {
	t.Helper()
	replicas := 1
	if c != nil {
		replicas = natsd.Members
	}
	s := &scene{t, c, url, connect(t, url), "PAYMENTS" + rand.Text()[:8], deposed.NewElection(t, "billing")}
	// A cluster has no place for it while it takes a server for lost that has just come back.
	wait.Succeeds(t, "a stream", func(context.Context) error {
		_, err := s.js.CreateStream(wait.Context(t), jetstream.StreamConfig{
			Name: s.name, Subjects: []string{s.name + ".>"}, Replicas: replicas, Duplicates: time.Minute,
		})
		return err
	})
	return s
}

// again returns another stream and election on the same servers.
func (s *scene) again(t testing.TB) *scene {
	return newScene(t, s.cluster, s.url)
}

func (s *scene) fenceSubject() string { return s.name + ".fence" }

func (s *scene) message(value string) *nats.Msg {
	return &nats.Msg{Subject: s.name + ".debit", Data: []byte(value)}
}

// candidacy is a leader with its own access to the stream.
type candidacy struct {
	*scene
	*deposed.Leader
	js   jetstream.JetStream
	term *tenure.Term
}

// elect returns once the candidate leads. An earlier leader must have stopped leading.
func (s *scene) elect(id string, js jetstream.JetStream) *candidacy {
	return s.candidacy(s.election.Elect(id), js)
}

// supplant makes another candidate the leader. It returns when that candidate leads and this one
// still does not know.
func (n *candidacy) supplant(id string, js jetstream.JetStream) *candidacy {
	return n.candidacy(n.Supplant(id), js)
}

func (s *scene) candidacy(l *deposed.Leader, js jetstream.JetStream) *candidacy {
	return &candidacy{s, l, js, l.Term}
}

func (n *candidacy) open() *fenced.Publisher {
	n.Helper()
	p, err := fenced.Open(wait.Context(n), n.term, n.js, n.name, n.fenceSubject())
	must(n, err)
	return p
}

func (n *candidacy) publish(p *fenced.Publisher, value string) {
	n.Helper()
	_, err := p.Publish(wait.Context(n), n.message(value))
	must(n, err)
}

// unfenced is the write of a leader that does not use this package.
func (n *candidacy) unfenced(ctx context.Context, value string) error {
	m := n.message(value)
	m.Header = nats.Header{fenced.Header: {fmt.Sprint(n.term.Token())}}
	_, err := n.js.PublishMsg(ctx, m)
	return err
}

// wrote returns a message of this leader as consumers see it.
func (n *candidacy) wrote(value string) string { return fmt.Sprintf("%d:%s", n.term.Token(), value) }

// entry is a message as consumers see it.
type entry struct {
	token uint64
	value string
}

func (e entry) String() string { return fmt.Sprintf("%d:%s", e.token, e.value) }

// stored returns all messages that a consumer sees.
func (s *scene) stored() (seen []entry) {
	s.Helper()
	stream, err := s.js.Stream(wait.Context(s), s.name)
	must(s, err)
	c, err := stream.OrderedConsumer(wait.Context(s), jetstream.OrderedConsumerConfig{})
	must(s, err)
	all, err := c.Messages()
	must(s, err)
	defer all.Stop()
	for last := stream.CachedInfo().State.LastSeq; ; {
		m, err := all.Next(jetstream.NextMaxWait(wait.Left()))
		must(s, err)
		if !fenced.IsFence(m.Headers()) {
			token, ok := fenced.Token(m.Headers())
			if !ok {
				s.Errorf("%s carries no token", m.Data())
			}
			seen = append(seen, entry{token, string(m.Data())})
		}
		if meta, err := m.Metadata(); err != nil || meta.Sequence.Stream >= last {
			must(s, err)
			return seen
		}
	}
}

func (s *scene) expect(want ...string) {
	s.Helper()
	var got []string
	for _, e := range s.stored() {
		got = append(got, e.String())
	}
	if !slices.Equal(got, want) {
		s.Errorf("the stream holds %q, not %q", got, want)
	}
}

// relayed returns a connection to the stream that can be delayed, and the relay for that.
func (s *scene) relayed() (jetstream.JetStream, *relay.Relay) {
	s.Helper()
	url := s.url
	if s.cluster != nil {
		url = s.cluster.Servers[0].URL()
	}
	r, err := relay.New(url)
	must(s, err)
	s.Cleanup(r.Close)
	return connect(s, r.URL()), r
}

// outcomeOf waits for the error of a call that aside has started.
func outcomeOf(t testing.TB, done <-chan error) error {
	t.Helper()
	select {
	case err := <-done:
		return err
	case <-wait.Context(t).Done():
		t.Fatal("a call hangs")
		return nil
	}
}

func aside(call func() error) <-chan error {
	done := make(chan error, 1)
	go func() { done <- call() }()
	return done
}

// BenchmarkPublish compares publishing with and without the fence, one message after another and
// eight at a time, to a stream on one server and on three.
func BenchmarkPublish(b *testing.B) {
	for name, s := range map[string]*scene{"one": onOne(b), "three": onThree(b, natsd.StartCluster)} {
		leader := s.elect("a", s.js)
		p := leader.open()
		const text = "a message of some thirty bytes.."
		for how, publish := range map[string]func() error{
			"plain":  func() error { return leader.unfenced(b.Context(), text) },
			"fenced": func() error { _, err := p.Publish(b.Context(), s.message(text)); return err },
		} {
			b.Run(name+"-"+how, func(b *testing.B) { measure(b, 1, publish) })
			b.Run(name+"-"+how+"-by-eight", func(b *testing.B) { measure(b, 8, publish) })
		}
	}
}

// measure reports quantiles of the time of one call.
func measure(b *testing.B, at int, do func() error) {
	var mu sync.Mutex
	var took figures.Dist
	left := make(chan struct{}, 1000)
	var all sync.WaitGroup
	for range at {
		all.Go(func() {
			for range left {
				began := time.Now()
				if err := do(); err != nil {
					b.Error(err)
				}
				mu.Lock()
				took = append(took, time.Since(began))
				mu.Unlock()
			}
		})
	}
	for b.Loop() {
		left <- struct{}{}
	}
	close(left)
	all.Wait()
	took.Report(b, "")
}

func TestOneServer(t *testing.T) {
	t.Parallel()
	each(t, onOne(t))
}

func TestThreeServers(t *testing.T) {
	t.Parallel()
	each(t, onThree(t, natsd.StartCluster))
}

func each(t *testing.T, servers *scene) {
	for name, run := range map[string]func(*scene){
		"LateMessage":         lateMessage,
		"LateMessageUnfenced": lateMessageUnfenced,
		"MessageBeforeOpen":   messageBeforeOpen,
		"LateFence":           lateFence,
		"LostAnswer":          lostAnswer,
		"Duplicate":           duplicate,
		"OwnConditions":       ownConditions,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run(servers.again(t))
		})
	}
}

// held starts a publish whose message or answer the network delays. Its caller gives up at that
// time.
func held(s *scene, kept func() bool, publish func(context.Context) error) error {
	s.Helper()
	ctx, giveUp := context.WithCancel(wait.Context(s))
	defer giveUp()
	done := aside(func() error { return publish(ctx) })
	wait.Until(s, "the network has it", kept)
	giveUp()
	return outcomeOf(s, done)
}

// sent returns a function that reports whether anything was sent since.
func sent(js jetstream.JetStream) func() bool {
	nc := js.Conn()
	before := nc.Stats().OutMsgs
	return func() bool {
		n, err := nc.Buffered()
		return err == nil && n == 0 && nc.Stats().OutMsgs > before
	}
}

// lateMessage: a message that the network delayed arrives after the next leader's fence.
func lateMessage(s *scene) {
	js, network := s.relayed()
	old := s.elect("old", js)
	late := old.open()
	old.publish(late, "early")
	network.Hold()
	if err := held(s, sent(js), func(ctx context.Context) error {
		_, err := late.Publish(ctx, s.message("late"))
		return err
	}); !errors.Is(err, fenced.ErrUnknown) {
		s.Errorf("a message on its way: %v", err)
	}
	next := old.supplant("next", s.js)
	p := next.open()
	next.publish(p, "mine")
	network.Release()
	_, err := late.Publish(wait.Context(s), s.message("later")) // it arrives after the late one
	if !errors.Is(err, fenced.ErrFenced) || !errors.Is(err, tenure.ErrLost) {
		s.Errorf("a deposed leader gets the error %v", err)
	}
	s.expect(old.wrote("early"), next.wrote("mine"))
}

// lateMessageUnfenced is lateMessage without the fence. It shows that the fence is needed.
func lateMessageUnfenced(s *scene) {
	js, network := s.relayed()
	old := s.elect("old", js)
	network.Hold()
	_ = held(s, sent(js), func(ctx context.Context) error { return old.unfenced(ctx, "late") })
	next := old.supplant("next", s.js)
	must(s, next.unfenced(wait.Context(s), "mine"))
	network.Release()
	must(s, old.unfenced(wait.Context(s), "later"))
	s.expect(next.wrote("mine"), old.wrote("late"), old.wrote("later"))
}

// messageBeforeOpen: the next leader does not fence off messages that arrive before it opens. It
// learns where they end.
func messageBeforeOpen(s *scene) {
	js, network := s.relayed()
	old := s.elect("old", js)
	late := old.open()
	network.Hold()
	_ = held(s, sent(js), func(ctx context.Context) error {
		_, err := late.Publish(ctx, s.message("late"))
		return err
	})
	next := old.supplant("next", s.js)
	network.Release()
	old.publish(late, "later")
	p := next.open()
	next.publish(p, "mine")
	s.expect(old.wrote("late"), old.wrote("later"), next.wrote("mine"))
}

// lateFence: a message of the old leader's fence that arrives after the next leader's has no
// effect.
func lateFence(s *scene) {
	old := s.elect("old", s.js)
	first := old.open()
	stream, err := s.js.Stream(wait.Context(s), s.name)
	must(s, err)
	taken, err := stream.GetMsg(wait.Context(s), first.Begin())
	must(s, err)
	// So that the state under which it was sent is there again.
	must(s, stream.Purge(wait.Context(s)))
	next := old.supplant("next", s.js)
	p := next.open()
	next.publish(p, "one")
	if _, err := s.js.PublishMsg(wait.Context(s), &nats.Msg{Subject: taken.Subject, Header: taken.Header}); err == nil {
		s.Error("the old leader has taken the fence back")
	}
	if _, err := fenced.Open(wait.Context(s), old.term, s.js, s.name, s.fenceSubject()); !errors.Is(err, fenced.ErrFenced) || !errors.Is(err, tenure.ErrLost) {
		s.Errorf("the old leader opens: %v", err)
	}
	if _, err := first.Publish(wait.Context(s), s.message("late")); !errors.Is(err, fenced.ErrFenced) {
		s.Errorf("the old leader publishes: %v", err)
	}
	next.publish(p, "two")
	s.expect(next.wrote("one"), next.wrote("two"))
}

// lostAnswer: a message is stored and its publisher cannot know.
func lostAnswer(s *scene) {
	js, network := s.relayed()
	leader := s.elect("a", js)
	p := leader.open()
	network.Mute()
	stream, err := s.js.Stream(wait.Context(s), s.name)
	must(s, err)
	stored := func() bool {
		_, err := stream.GetLastMsgForSubject(wait.Context(s), s.message("").Subject)
		return err == nil
	}
	if err := held(s, stored, func(ctx context.Context) error {
		_, err := p.Publish(ctx, s.message("x"))
		return err
	}); !errors.Is(err, fenced.ErrUnknown) || errors.Is(err, tenure.ErrLost) {
		s.Errorf("a lost answer: %v", err)
	}
	network.Heal()
	leader.js = s.js
	leader.publish(leader.open(), "y")
	s.expect(leader.wrote("x"), leader.wrote("y"))
}

// duplicate: a repeated message ID does not bypass the fence. Either the message is refused, or
// nothing is stored.
func duplicate(s *scene) {
	old := s.elect("old", s.js)
	late := old.open()
	m := s.message("once")
	m.Header = nats.Header{jetstream.MsgIDHeader: {"id"}}
	for range 2 {
		if _, err := late.Publish(wait.Context(s), m); err != nil {
			s.Error(err)
		}
	}
	next := old.supplant("next", s.js)
	p := next.open()
	if ack, err := late.Publish(wait.Context(s), m); err == nil && !ack.Duplicate {
		s.Errorf("a deposed leader publishes: %+v", ack)
	}
	m.Header[jetstream.MsgIDHeader] = []string{"other"}
	if ack, err := late.Publish(wait.Context(s), m); !errors.Is(err, fenced.ErrFenced) {
		s.Errorf("a deposed leader publishes: %+v, %v", ack, err)
	}
	if ack, err := p.Publish(wait.Context(s), m); err != nil || ack.Duplicate {
		s.Errorf("the id of a message that was refused is used up: %+v, %v", ack, err)
	}
	s.expect(old.wrote("once"), next.wrote("once"))
}

// ownConditions: several servers may have received a message. If one refuses it for a condition of
// the caller, another may still have stored it.
func ownConditions(s *scene) {
	leader := s.elect("a", s.js)
	p := leader.open()
	m := s.message("x")
	m.Header = nats.Header{jetstream.ExpectedLastSeqHeader: {"1"}}
	var refused *jetstream.APIError
	replicated := s.cluster != nil
	_, err := p.Publish(wait.Context(s), m)
	unknown := errors.Is(err, fenced.ErrUnknown)
	if !errors.As(err, &refused) || errors.Is(err, fenced.ErrFenced) || unknown != replicated {
		s.Errorf("with the stream's last sequence: %v", err)
	}
	// It would end a replicated stream.
	m.Header = nats.Header{jetstream.ExpectedLastMsgIDHeader: {"other"}}
	_, err = p.Publish(wait.Context(s), m)
	if errors.Is(err, fenced.ErrHeader) != replicated || errors.As(err, &refused) == replicated {
		s.Errorf("with its last id: %v", err)
	}
	leader.publish(p, "y")
	s.expect(leader.wrote("y"))
}
