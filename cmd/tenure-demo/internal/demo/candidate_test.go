//go:build integration

package demo

import (
	"encoding/json"
	"io"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/cmd/internal/peers"
	"github.com/tenure-go/tenure/cmd/internal/stores"
	"github.com/tenure-go/tenure/cmd/internal/stores/kafkatopic"
	"github.com/tenure-go/tenure/cmd/internal/stores/natsbucket"
	"github.com/tenure-go/tenure/cmd/internal/test/must"
	"github.com/tenure-go/tenure/internal/crew"
	"github.com/tenure-go/tenure/internal/test/wait"
)

// serves starts the demo's own server.
func serves(t *testing.T, o Options) stores.Place {
	t.Helper()
	place, closes, err := o.serve()
	must.OK(t, err)
	t.Cleanup(closes)
	return place
}

// start runs a candidate in this process until its input ends. The candidate reports to out.
func start(t *testing.T, place stores.Place, out io.Writer) (input io.Closer, ended <-chan error) {
	t.Helper()
	return startSpec(t, spec{Place: place, Election: "demo", ID: "c1", Lease: time.Minute}, out)
}

func startSpec(t *testing.T, s spec, out io.Writer) (input io.Closer, ended <-chan error) {
	t.Helper()
	in, feed := io.Pipe()
	done := make(chan error, 1)
	ctx := wait.Context(t)
	go func() { done <- RunCandidate(ctx, in, out) }()
	must.OK(t, json.NewEncoder(feed).Encode(s))
	return feed, done
}

// waitFor returns a writer and a channel that is closed once the text was written.
func waitFor(text string) (*until, <-chan struct{}) {
	found := make(chan struct{})
	u := &until{text: text}
	u.found = func() {
		u.text = "\x00" // calls found only once
		close(found)
	}
	return u, found
}

func TestCandidateReleasesAndEndsWithItsInput(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	place := serves(t, Options{})
	if s, err := stores.Open(t.Context(), place, stores.Options{Create: true}); err != nil {
		t.Fatal(err)
	} else {
		_ = s.Close()
	}
	out, acted := waitFor(`"act":1`)
	input, ended := start(t, place, out)
	<-acted
	_ = input.Close()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if text := out.all.String(); !strings.Contains(text, `"event":"released"`) {
		t.Errorf("not released:\n%s", text)
	}
}

// A candidate on object storage has peers. It reports its writes to the demo, because the store
// does not push.
func TestCandidateOnObjectStorageReportsItsWrites(t *testing.T) {
	place := serves(t, Options{EmbeddedS3: true})
	for name, peer := range map[string]*peers.Settings{
		"alone": nil,
		"peers": {Listen: peers.Endpoint{Host: "127.0.0.1"}, Address: peers.Endpoint{Host: "127.0.0.1"}, Networks: loopback},
	} {
		released(t, place, name)
		out, acted := waitFor(`"act":`)
		input, ended := startSpec(t, spec{Place: place, Election: name, ID: "c1", Lease: time.Minute, Peer: peer}, out)
		<-acted
		_ = input.Close()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		text := out.all.String()
		for _, want := range []string{`"wrote":{"`, `"event":"released"`, `"leaderID":"c1"`} {
			if !strings.Contains(text, want) {
				t.Errorf("%s is missing in:\n%s", want, text)
			}
		}
		if published := strings.Contains(text, `"leaderAddr":"127.0.0.1:`); published != (peer != nil) {
			t.Errorf("%s: an address is published: %v", name, published)
		}
	}
}

// released writes a released record, so that a candidate need not wait for an unknown lease.
func released(t *testing.T, place stores.Place, election string) {
	t.Helper()
	s, err := stores.Open(t.Context(), place, stores.Options{})
	must.OK(t, err)
	defer s.Close()
	const record = `{"leaderID":"c0","leaderAddr":"","lastUpdated":"2026-01-02T12:00:00Z","term":1,"leaseMillis":60000,"incarnation":"i","seq":1,"nonce":"n","released":true}`
	if _, err := s.Driver.CompareAndSwap(t.Context(), election, "", []byte(record)); err != nil {
		t.Fatal(err)
	}
}

// A candidate that a group nominates publishes its group, and reports a leader of another group.
func TestCandidateOfAGroupPublishesIt(t *testing.T) {
	place := serves(t, Options{EmbeddedKafka: &kafkatopic.Place{Topic: KafkaTopic, NELI: &kafkatopic.NELI{Session: 30 * time.Second}}})
	s, err := stores.Open(t.Context(), place, stores.Options{Create: true})
	must.OK(t, err)
	defer s.Close()
	n, err := s.Nominate(t.Context(), "demo") // this creates the group's topic
	must.OK(t, err)
	_ = n.Close()
	out, acted := waitFor(`"act":1`)
	input, ended := start(t, place, out)
	<-acted
	e, err := s.Driver.Read(t.Context(), "demo")
	if err != nil || !strings.Contains(string(e.Value), `"kafka.group":"demo"`) {
		t.Errorf("the record is %s, %v", e.Value, err)
	}
	c := candidate{reports: crew.NewReporter(out), nomination: n}
	c.hear(tenure.Event{Kind: tenure.EventLeader, Term: 7, Leader: tenure.Leader{ID: "x", Metadata: map[string]string{"kafka.group": "other"}}})
	c.hear(tenure.Event{Kind: tenure.EventLeader, Term: 8, Leader: tenure.Leader{ID: "x", Metadata: n.Metadata}})
	_ = input.Close()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	text := out.all.String()
	if strings.Count(text, `"event":"alarm"`) != 1 || !strings.Contains(text, "two consumer groups") || !strings.Contains(text, `"event":"released"`) {
		t.Errorf("got:\n%s", text)
	}
}

var loopback = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}

// A candidate that starts while the server is down reports this and keeps trying.
func TestCandidateWaitsForItsStore(t *testing.T) {
	out, reported := waitFor(`"event":"trouble"`)
	nobody := stores.Place{At: &natsbucket.Place{Servers: []string{"nats://127.0.0.1:1"}, Bucket: Bucket}}
	input, ended := start(t, nobody, out)
	<-reported
	_ = input.Close()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
