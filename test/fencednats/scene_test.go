//go:build integration

package fencednats

import (
	"context"
	"crypto/rand"
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

// BenchmarkCluster compares publishing to a replicated stream with and without the fence, one
// message after another and eight at a time.
func BenchmarkCluster(b *testing.B) {
	s := onThree(b, natsd.StartCluster)
	leader := s.elect("a", s.js)
	p := leader.open()
	publish := map[string]func() error{
		"plain": func() error { return leader.unfenced(b.Context(), "a message of some thirty bytes..") },
		"fenced": func() error {
			_, err := p.Publish(b.Context(), s.message("a message of some thirty bytes.."))
			return err
		},
	}
	for _, name := range []string{"plain", "fenced"} {
		b.Run(name, func(b *testing.B) { measure(b, 1, publish[name]) })
		b.Run(name+"-by-eight", func(b *testing.B) { measure(b, 8, publish[name]) })
	}
}

// measure reports quantiles of the time of one call.
func measure(b *testing.B, at int, do func() error) {
	var mu sync.Mutex
	var took []time.Duration
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
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-µs")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs")
}
