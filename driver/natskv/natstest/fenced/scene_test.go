//go:build integration

package fenced_test

import (
	"crypto/rand"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/clock"
	"github.com/tenure-go/tenure/driver/faults"
	"github.com/tenure-go/tenure/driver/memory"
	"github.com/tenure-go/tenure/driver/natskv/fenced"
	"github.com/tenure-go/tenure/driver/natskv/internal/test/natsnet"
	"github.com/tenure-go/tenure/driver/natskv/natstest"
	"github.com/tenure-go/tenure/internal/record"
	"github.com/tenure-go/tenure/internal/test/wait"
)

// lease is longer than all delays of the machine. No test waits for its end.
const lease = 5 * time.Minute

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
	js    jetstream.JetStream
	store *memory.Store
	name  string
	made  jetstream.StreamConfig
}

func newScene(t testing.TB, change ...func(*jetstream.StreamConfig)) *scene {
	t.Helper()
	c := jetstream.StreamConfig{Name: "PAYMENTS", Subjects: []string{"payments.>"}}
	for _, ch := range change {
		ch(&c)
	}
	s := &scene{t, connect(t, natstest.StartServer(t)), memory.New(), "billing" + rand.Text()[:8], c}
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
	if err != nil {
		s.Fatal(err)
	}
	return stream
}

// candidacy is a leader with its own access to the election's store, and a clock that can be
// stopped.
type candidacy struct {
	*scene
	store faults.Store
	clock *standing
	term  *tenure.Term
}

// standing is a clock that stands still while its machine is frozen, so that the leader does not
// notice the pause.
type standing struct {
	clock.Clock
	at atomic.Pointer[clock.Reading]
}

func (c *standing) Now() clock.Reading {
	if at := c.at.Load(); at != nil {
		return *at
	}
	return c.Clock.Now()
}

func (c *standing) freeze() {
	now := c.Clock.Now()
	c.at.Store(&now)
}

// elect returns once the candidate leads. An earlier leader must have stopped leading.
func (s *scene) elect(id string) *candidacy {
	s.Helper()
	n := &candidacy{scene: s, store: faults.New(s.store, 0, faults.Plan{}), clock: &standing{Clock: clock.System{}}}
	e, err := tenure.New(n.store, s.name, tenure.Config{ID: id, Lease: lease, Clock: n.clock})
	if err != nil {
		s.Fatal(err)
	}
	n.term, err = e.Campaign(wait.Context(s))
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() {
		n.clock.at.Store(nil)
		n.store.Heal()
		_ = n.term.Resign(wait.Context(s))
	})
	return n
}

// vacate ends the present leader's lease without its knowledge, with the same effect as its expiry:
// the record becomes a released one. It reports whether no other write came in between.
func (s *scene) vacate() bool {
	s.Helper()
	e, err := s.store.Read(wait.Context(s), s.name)
	must(s, err)
	r, err := record.Decode(e.Value)
	must(s, err)
	r.Released, r.Nonce, r.Seq = true, rand.Text(), r.Seq+1
	value, err := record.Encode(r)
	must(s, err)
	_, err = s.store.CompareAndSwap(wait.Context(s), s.name, e.Version, value)
	return err == nil
}

// supplant freezes the leader's clocks and returns when another candidate leads. Both then believe
// that they lead.
func (n *candidacy) supplant(id string) *candidacy {
	n.Helper()
	n.clock.freeze()
	n.store.Partition()
	wait.Until(n, "the record says that the term is over", n.vacate)
	next := n.elect(id)
	if err := errors.Join(n.term.Err(), next.term.Err()); err != nil {
		n.Fatalf("one of them knows: %v", err)
	}
	if next.term.Token() <= n.term.Token() {
		n.Fatalf("token %d follows %d", next.term.Token(), n.term.Token())
	}
	return next
}

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
		if err != nil {
			s.Fatal(err)
		}
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
