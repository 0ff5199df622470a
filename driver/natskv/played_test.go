package natskv

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"
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

// TestWatchSetUpIsBounded: without an answer to the set-up, Watch ends with its context and leaves
// nothing behind.
func TestWatchSetUpIsBounded(t *testing.T) { natsnet.InBubble(t, watchSetUpIsBounded) }

func watchSetUpIsBounded(t *testing.T) {
	nc, store := play(t, func(*nats.Msg) []byte { return nil })
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := store.Watch(ctx, testKey, func(driver.Entry) {}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("watch: %v; want the context's error", err)
	}
	wait.Until(t, "one subscription is left, the library's for answers", func() bool { return nc.NumSubscriptions() == 1 })
	if !store.hub.watches.Empty() {
		t.Error("a watch is left")
	}
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
