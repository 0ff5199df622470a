package natskv

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/natskv/internal/connection"
	"github.com/tenure-go/tenure/driver/natskv/internal/test/natsnet"
	"github.com/tenure-go/tenure/internal/test/wait"
)

const testKey = "billing"

// play returns a connection to a server that the test plays, and a store over it on bucket B. The
// store has made no request yet.
func play(t testing.TB, answer func(m *nats.Msg) []byte) (*nats.Conn, *Store) {
	t.Helper()
	nc := natsnet.Connect(t, natsnet.Play(t, answer))
	return nc, unopened(t, nc)
}

// silent plays a server that answers nothing, and returns the requests as well.
func silent(t testing.TB) (chan *nats.Msg, *Store) {
	t.Helper()
	asked := make(chan *nats.Msg, 1000)
	_, s := play(t, func(m *nats.Msg) []byte { asked <- m; return nil })
	return asked, s
}

// unopened returns a store on bucket B without a request to the server.
func unopened(t testing.TB, nc *nats.Conn) *Store {
	return newStore(newBucket(connection.Borrow(natsnet.JetStream(t, nc)), "B"))
}

// TestImpatientHandle: a key that was not read is not absent.
func TestImpatientHandle(t *testing.T) {
	e, err := FromLegacyKeyValue(impatient{}).Read(wait.Context(t), testKey)
	if err == nil {
		t.Errorf("a watch that gave up reads as %+v", e)
	}
}

// impatient is a handle whose watch gives up before it has shown anything. It reports an error, and
// also the nil that means that everything was shown.
type impatient struct {
	nats.KeyValue
	nats.KeyWatcher
}

func (i impatient) Get(string) (nats.KeyValueEntry, error) { return nil, nats.ErrKeyNotFound }

func (i impatient) Watch(string, ...nats.WatchOpt) (nats.KeyWatcher, error) { return i, nil }

func (i impatient) Bucket() string { return "B" }

func (i impatient) Updates() <-chan nats.KeyValueEntry {
	c := make(chan nats.KeyValueEntry, 1)
	c <- nil
	close(c)
	return c
}

func (i impatient) Error() <-chan error {
	c := make(chan error, 1)
	c <- nats.ErrKeyWatcherTimeout
	return c
}

// TestLostConnection: a request whose connection is gone must not wait for its context, because the
// caller could try again.
func TestLostConnection(t *testing.T) {
	asked := make(chan *nats.Msg, 10)
	p := natsnet.StartProxy(t, natsnet.Play(t, func(m *nats.Msg) []byte { asked <- m; return nil }))
	store := unopened(t, natsnet.Connect(t, p.URL()))
	failed := make(chan error)
	go func() {
		_, err := store.Read(context.Background(), testKey)
		failed <- err
	}()
	<-asked
	p.Drop()
	select {
	case err := <-failed:
		if !errors.Is(err, connection.ErrLost) && !errors.Is(err, connection.ErrOffline) {
			t.Errorf("a read whose connection was lost: %v", err)
		}
	case <-wait.Context(t).Done():
		t.Error("a read waits on though its connection was lost")
	}
}

// plain shows values as they are.
type plain struct{ Translator }

func (plain) Show(_ time.Duration, value []byte, _ driver.Version) []byte { return value }

func TestVersionsOfAbsences(t *testing.T) {
	toys := &translating{by: plain{}}
	for v, missing := range map[driver.Version]bool{"": true, unwritten + "0": true, unwritten + "1795303312068703": true, "17": false} {
		e := toys.show(time.Minute, driver.Entry{Version: v})
		if bare, absence := unmark(e.Version); bare != v || !absence {
			t.Errorf("version %q of an absence comes back as %q, %v", v, bare, absence)
		}
		if bare, absence := unmark(v); bare != v || absence != missing {
			t.Errorf("version %q comes back as %q, %v", v, bare, absence)
		}
	}
	e := toys.show(time.Minute, driver.Entry{Value: []byte("v"), Version: "17", Floor: 17})
	if e.Version != "17" || e.Floor != 17 {
		t.Errorf("a value is shown as %+v", e)
	}
}

// TestVanishedRequest: a stream without a leader never answers a request that it has not answered
// in time. There is time for more tries. With a context that has ended, no request is sent.
func TestVanishedRequest(t *testing.T) {
	for what, call := range map[string]func(ctx context.Context, s *Store) error{
		"read": func(ctx context.Context, s *Store) error { _, err := s.Read(ctx, testKey); return err },
		"write": func(ctx context.Context, s *Store) error {
			_, err := s.CompareAndSwap(ctx, testKey, "1", []byte("v"))
			return err
		},
	} {
		t.Run(what, func(t *testing.T) { natsnet.InBubble(t, func(t *testing.T) { vanishedRequest(t, call) }) })
	}
}

func vanishedRequest(t *testing.T, call func(ctx context.Context, s *Store) error) {
	asked, s := silent(t)
	ended, end := context.WithCancel(t.Context())
	end()
	err := call(ended, s)
	if synctest.Wait(); !errors.Is(err, context.Canceled) || len(asked) > 0 {
		t.Errorf("with a context that has ended: %v, and %d requests were sent", err, len(asked))
	}
	start := time.Now()
	err = call(wait.Context(t), s)
	if d := time.Since(start); !errors.Is(err, connection.ErrUnanswered) || outcomeOf(err) != open || d > 3*time.Second {
		t.Errorf("%v after %v; want an error that leaves it open, in time", err, d)
	}
	if text := err.Error(); !strings.Contains(text, testKey) || !strings.Contains(text, "bucket B") {
		t.Errorf("%v; want the key and the bucket", err)
	}
}

// TestReadsQueue: the reads of thousands of followers must not delay the leaders' renewals in the
// server's queue.
func TestReadsQueue(t *testing.T) { natsnet.InBubble(t, readsQueue) }

func readsQueue(t *testing.T) {
	const readsAtOnce = 128
	asked, s := silent(t)
	ctx, leave := context.WithCancel(t.Context())
	var reads sync.WaitGroup
	for range readsAtOnce + 10 {
		reads.Go(func() { _, _ = s.Read(ctx, testKey) })
	}
	wait.Until(t, "the reads are sent", func() bool { return len(asked) == readsAtOnce })
	reads.Go(func() { _, _ = s.CompareAndSwap(ctx, testKey, "1", []byte("v")) })
	wait.Until(t, "a write goes past them", func() bool { return len(asked) == readsAtOnce+1 })
	leave()
	reads.Wait()
	if n := len(asked); n != readsAtOnce+1 {
		t.Errorf("%d requests; want %d reads and a write", n, readsAtOnce)
	}
	short, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if _, err := s.Read(short, testKey); err == nil {
		t.Error("a read without an answer succeeded")
	}
	for range len(asked) {
		<-asked
	}
	go func() { _, _ = s.Read(t.Context(), testKey) }()
	select {
	case m := <-asked:
		if !strings.Contains(m.Subject, getMessage) {
			t.Errorf("asked on %s", m.Subject)
		}
	case <-wait.Context(t).Done():
		t.Error("after callers have left, no read gets through")
	}
}

// TestWatchSetUpIsBounded: without an answer to the set-up, Watch ends with its context and says
// that nothing is pushed. When it is stopped, it leaves nothing behind.
func TestWatchSetUpIsBounded(t *testing.T) { natsnet.InBubble(t, watchSetUpIsBounded) }

func watchSetUpIsBounded(t *testing.T) {
	nc, store := play(t, func(*nats.Msg) []byte { return nil })
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	pushes := make(chan driver.Entry, 9)
	stop, err := store.Watch(ctx, testKey, func(e driver.Entry) { pushes <- e })
	if err != nil {
		t.Fatal(err)
	}
	if e := <-pushes; !errors.Is(e.Lost, driver.ErrConnecting) {
		t.Errorf("pushed: %+v; want that no changes are pushed", e)
	}
	stop()
	wait.Until(t, "one subscription is left, the library's for answers", func() bool { return nc.NumSubscriptions() == 1 })
}

// The server answers for its streams' messages, but describes no stream.
func TestReadWhileTheClusterHasNoLeader(t *testing.T) {
	nc, _ := play(t, func(m *nats.Msg) []byte {
		switch {
		case m.Subject == "$JS.API.STREAM.INFO.KV_B":
			return []byte(`{"error":{"code":503,"err_code":10008,"description":"told so"}}`)
		case strings.Contains(string(m.Data), "absent"):
			return []byte(`{"error":{"code":404,"err_code":10037}}`)
		}
		return []byte(`{"message":{"seq":7,"data":"dg=="}}`)
	})
	b := newBucket(connection.Borrow(natsnet.JetStream(t, nc)), "B")
	if e, err := b.Read(wait.Context(t), testKey); outcomeOf(err) != open {
		t.Errorf("before the stream was ever described: %+v, %v", e, err)
	}
	info := streamInfo{Created: time.UnixMicro(1795300000000000), Now: time.UnixMicro(1795300001000000)}
	if err := b.identity.Check(info.Created, info.Now, b.conn.Number()); err != nil {
		t.Fatal(err)
	}
	e, err := b.Read(wait.Context(t), testKey)
	if err != nil || string(e.Value) != "v" || e.Floor != 1795300000000007 || e.Era != 1795300000000000 {
		t.Errorf("afterwards: %+v, %v", e, err)
	}
	if e, err := b.Read(wait.Context(t), "absent"); outcomeOf(err) != open {
		t.Errorf("an absence that no caller vouches for: %+v, %v", e, err)
	}
	if err := b.identity.Check(info.Created, info.Now, b.conn.Number()+1); err != nil {
		t.Fatal(err)
	}
	if e, err := b.Read(wait.Context(t), testKey); outcomeOf(err) != open {
		t.Errorf("over another connection: %+v, %v", e, err)
	}
}

// outcome is a caller's knowledge of a write.
type outcome string

const (
	applied    outcome = "applied"
	conflicted outcome = "conflict"
	forbidden  outcome = "denied"
	open       outcome = "unknown"
)

func outcomeOf(err error) outcome {
	switch {
	case err == nil:
		return applied
	case errors.Is(err, driver.ErrConflict):
		return conflicted
	case errors.Is(err, driver.ErrDenied):
		return forbidden
	}
	return open
}

// TestOutcome lets a program answer instead of the server, because most of these answers cannot be
// provoked.
func TestOutcome(t *testing.T) {
	refusal := func(code string) string {
		return `{"error":{"code":400,"err_code":` + code + `,"description":"told so"},"stream":"KV_B","seq":0}`
	}
	for _, c := range []struct {
		name, answer string
		want         outcome
		why          string
	}{
		{"acknowledged", `{"stream":"KV_B","seq":7}`, applied, "the stream stored it"},
		{"wrong last sequence", refusal("10071"), conflicted, "the version was another"},
		{"wrong last sequence of a replicated stream", refusal("10164"), conflicted, "the version was another, or is about to be"},
		{"duplicate in process", refusal("10158"), open, "an earlier delivery may still be stored"},
		{"last sequence not ready", refusal("10163"), open, "nothing was decided"},
		{"cluster not available", refusal("10008"), open, "a leader that steps down answers so after it has proposed"},
		{"not leader", refusal("10009"), open, "the message may have reached the leader too"},
		{"insufficient resources", refusal("10023"), open, "a leader that steps down answers so"},
		{"store failed", refusal("10077"), open, "a store that fails says little about what it kept"},
		{"value too long", refusal("10054"), open, "an error, but not one that the contract has a name for"},
		{"sealed", refusal("10109"), open, "likewise"},
		{"another stream expected", refusal("10060"), open, "likewise"},
		{"wrong last message id", refusal("10070"), open, "not our condition, so it answers another request"},
		{"another stream", `{"stream":"OTHER","seq":7}`, open, "what another stream stored is not in this one"},
		{"no sequence", `{"stream":"KV_B"}`, open, "there is no version without it"},
		{"duplicate", `{"stream":"KV_B","seq":7,"duplicate":true}`, open, "the sequence is that of another message"},
		{"no JSON", `+OK`, open, "the answer is not from the server"},
		{"nothing", ``, open, "the answer is not from the server"},
	} {
		t.Run(c.name, func(t *testing.T) {
			received := make(chan *nats.Msg, 100)
			_, store := play(t, func(m *nats.Msg) []byte { received <- m; return []byte(c.answer) })
			v, err := store.CompareAndSwap(wait.Context(t), testKey, "3", []byte("v"))
			if got := outcomeOf(err); got != c.want {
				t.Errorf("%s: %v (%v); want %s: %s", c.answer, got, err, c.want, c.why)
			}
			if c.want == applied && v != "7" {
				t.Errorf("version %q", v)
			}
			if n := len(received); n != 1 {
				t.Errorf("%d messages were sent; one attempt per call", n)
			}
		})
	}
}

// TestConditions checks the headers that are sent: they are the compare-and-swap.
func TestConditions(t *testing.T) {
	received := make(chan *nats.Msg, 1)
	_, store := play(t, func(m *nats.Msg) []byte { received <- m; return []byte(`{"stream":"KV_B","seq":7}`) })
	for _, c := range []struct {
		prev        driver.Version
		header      string
		value       string
		otherHeader string
		why         string
	}{
		{"", jetstream.ExpectedLastSubjSeqHeader, "0", jetstream.ExpectedLastSeqHeader, "the key has no message"},
		{"42", jetstream.ExpectedLastSubjSeqHeader, "42", jetstream.ExpectedLastSeqHeader, "the key's last message is this one"},
		{unwritten + "0", jetstream.ExpectedLastSeqHeader, "0", jetstream.ExpectedLastSubjSeqHeader, "the stream has no message"},
		{unwritten + "1795303312068703", jetstream.ExpectedLastSeqHeader, "1795303312068703", jetstream.ExpectedLastSubjSeqHeader,
			"nor has one that begins at a time"},
	} {
		if _, err := store.CompareAndSwap(wait.Context(t), testKey, c.prev, []byte("v")); err != nil {
			t.Fatal(err)
		}
		h := (<-received).Header
		if got := h.Get(c.header); got != c.value || h.Get(c.otherHeader) != "" {
			t.Errorf("from version %q: headers %v; want %s: %s, as %s", c.prev, h, c.header, c.value, c.why)
		}
		if h.Get(jetstream.ExpectedStreamHeader) != "KV_B" || h.Get(jetstream.MsgIDHeader) != "" {
			t.Errorf("from version %q: headers %v; want the stream's name and no message id", c.prev, h)
		}
	}
}

// TestRefusalsNameTheirRemedy: one code stands for all limits of a stream, so its text decides.
func TestRefusalsNameTheirRemedy(t *testing.T) {
	b := &bucket{name: "B", stream: "KV_B"}
	for _, c := range []struct{ code, text, option string }{
		{"10077", "maximum messages exceeded", "--max-msgs=-1"},
		{"10077", "maximum bytes exceeded", "--max-bytes=-1"},
		{"10054", "message size exceeds maximum allowed", "--max-msg-size=-1"},
	} {
		_, err := b.outcome([]byte(`{"error":{"code":400,"err_code":` + c.code + `,"description":"` + c.text + `"},"seq":0}`))
		if err == nil || !strings.HasSuffix(err.Error(), "nats stream edit KV_B "+c.option) {
			t.Errorf("%s: %v, want the remedy %s", c.text, err, c.option)
		}
	}
}

// lists is a bucket whose first lists stop after one key: the server that has their consumer is
// dead.
type lists struct {
	jetstream.KeyValue
	dead, made int
}

type fakeList chan string

func (l fakeList) Keys() <-chan string { return l }
func (fakeList) Stop() error           { return nil }

func (l *lists) Bucket() string { return "elections" }

func (l *lists) ListKeys(context.Context, ...jetstream.WatchOpt) (jetstream.KeyLister, error) {
	l.made++
	list := make(fakeList, 2)
	list <- "b"
	if l.made > l.dead {
		list <- "a"
		close(list)
	}
	return list, nil
}

// TestKeysOfADeadServer: a list that falls silent is made again, until the context ends.
func TestKeysOfADeadServer(t *testing.T) {
	for _, c := range []struct {
		dead int
		want []string
	}{{0, []string{"a", "b"}}, {2, []string{"a", "b"}}, {1000, nil}} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			fake := &lists{dead: c.dead}
			began := time.Now()
			got, err := FromKeyValue(fake).Keys(ctx)
			if !slices.Equal(got, c.want) || (err == nil) != (c.want != nil) {
				t.Errorf("%d silent lists: %q, %v", c.dead, got, err)
			}
			if took := time.Since(began); took > min(time.Minute, time.Duration(c.dead)*silence) {
				t.Errorf("%d silent lists take %v", c.dead, took)
			}
		})
	}
}
