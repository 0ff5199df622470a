package natstest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/natskv"
	"github.com/tenure-go/tenure/driver/natskv/internal/test/natsnet"
	"github.com/tenure-go/tenure/internal/test/wait"
)

// says returns a function that answers with one text.
func says(text string) func() []byte { return func() []byte { return []byte(text) } }

func (f *fixture) announce(s *natskv.Store, key, text string) (stop func()) {
	f.Helper()
	stop, err := s.Announce(wait.Context(f), key, says(text))
	f.must(err)
	return stop
}

// candidates returns the sorted answers, as one text.
func (f *fixture) candidates(s *natskv.Store, key string) string {
	f.Helper()
	all, err := s.Candidates(wait.Context(f), key)
	f.must(err)
	var texts []string
	for _, one := range all {
		texts = append(texts, string(one))
	}
	slices.Sort(texts)
	return strings.Join(texts, " ")
}

// subscriptions returns the number of those that the server has for presence.
func (f *fixture) subscriptions() (n int) {
	f.Helper()
	all, err := f.server.Subsz(&server.SubszOptions{Subscriptions: true, Limit: 10_000})
	f.must(err)
	for _, s := range all.Subs {
		if strings.HasPrefix(s.Subject, "tenure.candidates.") {
			n++
		}
	}
	return n
}

// Each process answers once for all its candidates of an election, over one subscription for all
// its elections, and nothing is sent until it is asked.
func TestCandidatesAnswerWhenAsked(t *testing.T) { InBubble(t, answersWhenAsked) }

func answersWhenAsked(t *testing.T) {
	f := newFixture(t)
	other := openStore(t, natsnet.JetStream(t, natsnet.Connect(t, f.server.ClientURL())), f.kv.Bucket())
	if got := f.candidates(f.store, testKey); got != "" {
		t.Errorf("without a candidate: %q", got)
	}
	stops := []func(){f.announce(f.store, testKey, "a"), f.announce(f.store, testKey, "b"), f.announce(other, testKey, "c")}
	for i := range 1000 {
		f.announce(f.store, fmt.Sprint("other-", i), "d")
	}
	if n := f.subscriptions(); n != 2 {
		t.Errorf("%d subscriptions; want one for each process", n)
	}
	before := f.server.NumSubscriptions()
	quiet := f.nc.Stats()
	time.Sleep(time.Hour)
	if now := f.nc.Stats(); now.OutMsgs != quiet.OutMsgs || now.InMsgs != quiet.InMsgs {
		t.Errorf("unasked, %d messages were sent and %d received", now.OutMsgs-quiet.OutMsgs, now.InMsgs-quiet.InMsgs)
	}
	if got := f.candidates(other, testKey); got != "a b c" {
		t.Errorf("the candidates are %q", got)
	}
	if now := f.nc.Stats(); now.OutMsgs != quiet.OutMsgs+1 || now.InMsgs != quiet.InMsgs+1 {
		t.Errorf("asked once, %d messages were sent and %d received", now.OutMsgs-quiet.OutMsgs, now.InMsgs-quiet.InMsgs)
	}
	if all, err := f.store.Candidates(wait.Context(t), ""); err != nil || len(all) != 1003 {
		t.Errorf("%d candidates of all elections, %v", len(all), err)
	}
	if got := f.candidates(f.store, "nothing"); got != "" {
		t.Errorf("of an election without candidates: %q", got)
	}
	for _, stop := range stops {
		stop()
		stop()
	}
	if got := f.candidates(f.store, testKey); got != "" {
		t.Errorf("after they have gone: %q", got)
	}
	wait.Until(t, "unused subscriptions end", func() bool { return f.server.NumSubscriptions() < before })
	_ = f.store.Close()
	wait.Until(t, "no subscription is left", func() bool { return f.subscriptions() == 0 })
	if _, err := f.store.Announce(wait.Context(t), testKey, says("e")); err == nil {
		t.Error("a closed store announces")
	}
}

// Questions cannot make a process fill its connection.
func TestAnswersAreBounded(t *testing.T) { InBubble(t, boundedAnswers) }

func boundedAnswers(t *testing.T) {
	f := newFixture(t)
	long := strings.Repeat("x", driver.MaxPresence)
	for i := range 1000 {
		f.announce(f.store, fmt.Sprintf("e-%03d", i), long)
	}
	f.announce(f.store, testKey, long+"x")
	f.announce(f.store, testKey, "two\nlines")
	f.announce(f.store, testKey, "")
	if got := f.candidates(f.store, testKey); got != "" {
		t.Errorf("unfit answers were sent: %q", got)
	}
	const maxAnswer = 256 << 10
	before := f.nc.Stats().OutBytes
	for range 100 {
		f.must(f.nc.PublishRequest("tenure.candidates."+f.kv.Bucket(), "nowhere", nil))
	}
	f.must(f.nc.Flush())
	time.Sleep(100 * time.Millisecond)
	if sent := f.nc.Stats().OutBytes - before; sent < maxAnswer/2 || sent > maxAnswer+10_000 {
		t.Errorf("%d bytes were sent within a second", sent)
	}
	time.Sleep(time.Second)
	if got := f.candidates(f.store, "e-999"); got != long {
		t.Errorf("a second later: %d bytes", len(got))
	}
}

// A subscription survives the loss of the connection. Without one, a question fails at once.
func TestPresenceOutlivesTheConnection(t *testing.T) { InBubble(t, presenceOutlives) }

func presenceOutlives(t *testing.T) {
	f := newFixture(t)
	watcher := openStore(t, natsnet.JetStream(t, natsnet.Connect(t, f.server.ClientURL())), f.kv.Bucket())
	f.announce(f.store, testKey, "a")
	f.must(f.nc.ForceReconnect())
	wait.Until(t, "it answers again", func() bool { return f.candidates(watcher, testKey) == "a" })
	f.nc.Close()
	if _, err := f.store.Candidates(wait.Context(t), testKey); !errors.Is(err, nats.ErrConnectionClosed) {
		t.Errorf("without a connection: %v", err)
	}
}

func TestPresenceOverAHandle(t *testing.T) { InBubble(t, presenceOverAHandle) }

func presenceOverAHandle(t *testing.T) {
	s := natskv.FromKeyValue(newFixture(t).kv)
	if _, err := s.Announce(t.Context(), testKey, says("a")); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("announce: %v", err)
	}
	if _, err := s.Candidates(t.Context(), testKey); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("ask: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}
