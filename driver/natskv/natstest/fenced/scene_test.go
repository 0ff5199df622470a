//go:build integration

package fenced_test

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver/natskv/fenced"
	"github.com/tenure-go/tenure/driver/natskv/internal/test/natsnet"
	"github.com/tenure-go/tenure/driver/natskv/natstest"
	"github.com/tenure-go/tenure/internal/test/deposed"
	"github.com/tenure-go/tenure/internal/test/wait"
)

// fence is a subject below the subjects of every stream here.
const fence = "payments.fence"

// TestMain lets more tests run in parallel than there are processors, because the tests mostly
// wait.
func TestMain(m *testing.M) {
	if err := flag.Set("test.parallel", "6"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

func connect(t testing.TB, s *server.Server, opts ...nats.Option) jetstream.JetStream {
	t.Helper()
	return natsnet.JetStream(t, natsnet.Connect(t, s.ClientURL(), opts...))
}

// scene is a server with a stream, and an election in another store.
type scene struct {
	testing.TB
	js       jetstream.JetStream
	election *deposed.Election
	made     jetstream.StreamConfig
}

func newScene(t testing.TB, change ...func(*jetstream.StreamConfig)) *scene {
	t.Helper()
	return sceneOn(t, natstest.StartServer(t), change...)
}

func sceneOn(t testing.TB, on *server.Server, change ...func(*jetstream.StreamConfig)) *scene {
	t.Helper()
	c := jetstream.StreamConfig{Name: "PAYMENTS", Subjects: []string{"payments.>"}}
	for _, ch := range change {
		ch(&c)
	}
	s := &scene{t, connect(t, on), deposed.NewElection(t, "billing"), c}
	s.create()
	return s
}

func (s *scene) create() jetstream.Stream {
	s.Helper()
	var stream jetstream.Stream
	// A server may not have removed yet what was just deleted.
	wait.Until(s, "the stream is made", func() (ok bool) {
		var err error
		stream, err = s.js.CreateStream(wait.Context(s), s.made)
		return err == nil
	})
	return stream
}

func (s *scene) stream() jetstream.Stream {
	s.Helper()
	stream, err := s.js.Stream(wait.Context(s), s.made.Name)
	must(s, err)
	return stream
}

// candidacy is a leader that publishes.
type candidacy struct {
	*scene
	*deposed.Leader
	term *tenure.Term
}

// elect returns once the candidate leads. An earlier leader must have stopped leading.
func (s *scene) elect(id string) *candidacy { return s.candidacy(s.election.Elect(id)) }

// supplant makes another candidate the leader. It returns when that candidate leads and this one
// still does not know.
func (n *candidacy) supplant(id string) *candidacy { return n.candidacy(n.Supplant(id)) }

func (s *scene) candidacy(l *deposed.Leader) *candidacy { return &candidacy{s, l, l.Term} }

func (n *candidacy) open(opts ...fenced.Option) *fenced.Publisher {
	n.Helper()
	p, err := fenced.Open(wait.Context(n), n.term, n.js, n.made.Name, fence, opts...)
	if err != nil {
		n.Fatal(err)
	}
	return p
}

func message(value string) *nats.Msg {
	return &nats.Msg{Subject: "payments.debit", Data: []byte(value)}
}

func (s *scene) publish(p *fenced.Publisher, values ...string) {
	s.Helper()
	for _, v := range values {
		if _, err := p.Publish(wait.Context(s), message(v)); err != nil {
			s.Fatal(err)
		}
	}
}

// wrote returns a message of this leader as consumers see it.
func (n *candidacy) wrote(value string) string { return fmt.Sprintf("%d:%s", n.term.Token(), value) }

// stored returns the messages as a consumer sees them, as "token:value".
func (s *scene) stored() (seen []string) {
	s.Helper()
	stream := s.stream()
	for at := uint64(1); at <= stream.CachedInfo().State.LastSeq; at++ {
		m, err := stream.GetMsg(wait.Context(s), at)
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			continue
		}
		must(s, err)
		if fenced.IsFence(m.Header) {
			continue
		}
		token, ok := fenced.Token(m.Header)
		if !ok {
			s.Errorf("%s carries no token", m.Data)
		}
		seen = append(seen, fmt.Sprintf("%d:%s", token, m.Data))
	}
	return seen
}

func (s *scene) expect(want ...string) {
	s.Helper()
	if got := s.stored(); !slices.Equal(got, want) {
		s.Errorf("the stream holds %q, not %q", got, want)
	}
}

// deposed checks the error of a leader that the server has refused because of a newer term.
func (s *scene) deposed(err error) {
	s.Helper()
	if !errors.Is(err, fenced.ErrFenced) || !errors.Is(err, tenure.ErrLost) || !errors.Is(err, tenure.ErrDeposed) || errors.Is(err, fenced.ErrUnknown) {
		s.Errorf("a deposed leader gets the error %v", err)
	}
}

// refuses requires that each lane refuses a deposed leader.
func (s *scene) refuses(late *fenced.Publisher) {
	s.Helper()
	for range 20 {
		_, err := late.Publish(wait.Context(s), message("late"))
		s.deposed(err)
	}
}
