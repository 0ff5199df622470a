package natstest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/tenure-go/tenure"
	election "github.com/tenure-go/tenure/compat/nats-kv-leader-elect"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/faults"
	"github.com/tenure-go/tenure/driver/memory"
	"github.com/tenure-go/tenure/driver/natskv/natstest"
)

// lease is the lease of a bucket with the shortest TTL that nats-kv-leader-elect accepts.
const (
	ttl   = 30 * time.Second
	lease = 10 * time.Second
	soon  = time.Second
)

// bubble runs a test in virtual time, over a store in memory.
func bubble(t *testing.T, test func(t *testing.T, store *memory.Store)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(t, memory.New()) })
}

// world is a server, and a connection to it.
type world struct {
	testing.TB
	server *server.Server
	nc     *nats.Conn
	js     nats.JetStreamContext
}

func newWorld(t testing.TB, change ...func(*server.Options)) *world {
	t.Helper()
	w := &world{TB: t, server: natstest.StartServer(t, change...)}
	w.nc, w.js = w.connect()
	return w
}

// onServer runs a test in virtual time with a server in the bubble.
func onServer(t *testing.T, test func(w *world), change ...func(*server.Options)) {
	t.Helper()
	natstest.InBubble(t, func(t *testing.T) { test(newWorld(t, change...)) })
}

// connect creates another connection.
func (w *world) connect(opts ...nats.Option) (*nats.Conn, nats.JetStreamContext) {
	w.Helper()
	nc := natstest.Connect(w, w.server, opts...)
	js, err := nc.JetStream()
	w.must(err)
	return nc, js
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// bucket creates a bucket in memory, because files take real time.
func (w *world) bucket(ttl time.Duration) nats.KeyValue {
	w.Helper()
	kv, err := w.js.CreateKeyValue(&nats.KeyValueConfig{Bucket: "ELECTIONS", TTL: ttl, Storage: nats.MemoryStorage})
	w.must(err)
	return kv
}

// modern returns a context of package jetstream over a connection of its own.
func (w *world) modern() jetstream.JetStream {
	w.Helper()
	nc, _ := w.connect()
	js, err := jetstream.New(nc)
	w.must(err)
	return js
}

// play is one process of a test.
type play struct {
	*election.Elector
	t    testing.TB
	name string
	line faults.Store // nil over a handle
	stop context.CancelFunc
	done chan error

	mu     sync.Mutex
	diary  []string
	wrongs []error
	on     func(what string) // further actions of callbacks
}

// draft returns a play without its elector.
func draft(t testing.TB, name string) *play {
	return &play{t: t, name: name, done: make(chan error, 1)}
}

// options returns the options of all plays: callbacks that write the diary.
func (p *play) options(opts ...election.Option) []election.Option {
	return append(p.splayed(election.WithoutSplay()), opts...)
}

// splayed returns them without WithoutSplay.
func (p *play) splayed(opts ...election.Option) []election.Option {
	return append([]election.Option{
		election.OnWon(func() { p.note("won") }), election.OnLost(func() { p.note("lost") }),
		election.OnCampaign(func(s election.State) { p.note(s.String()) }), election.OnError(p.onError),
	}, opts...)
}

func (p *play) onError(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.wrongs = append(p.wrongs, err)
}

// note writes into the diary, unless the last entry is the same.
func (p *play) note(what string) {
	p.mu.Lock()
	if n := len(p.diary); n == 0 || p.diary[n-1] != what {
		p.diary = append(p.diary, what)
	}
	on := p.on
	p.mu.Unlock()
	if on != nil {
		on(what)
	}
}

// then sets further actions of callbacks from now on.
func (p *play) then(on func(what string)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.on = on
}

// calls returns the callbacks since its last call. Repetitions count once.
func (p *play) calls() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	diary := p.diary
	p.diary = nil
	return diary
}

func (p *play) expect(want ...string) {
	p.t.Helper()
	if got := p.calls(); !slices.Equal(got, want) {
		p.t.Errorf("%s was called with %v, want %v", p.name, got, want)
	}
}

// errors returns the arguments of OnError.
func (p *play) errors() []error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.wrongs)
}

// begin starts it.
func (p *play) begin(e election.Election) *play {
	p.Elector = e.(*election.Elector)
	var ctx context.Context
	ctx, p.stop = context.WithCancel(p.t.Context())
	over := make(chan struct{})
	go func() {
		defer close(over)
		p.done <- p.Start(ctx)
	}()
	// No goroutine may be left in the bubble. Requests that a partition has swallowed end when
	// their time is over.
	p.t.Cleanup(func() {
		if p.line != nil {
			p.line.Heal()
		}
		p.stop()
		<-over
	})
	synctest.Wait()
	return p
}

// join starts a play with its own connection to the store.
func join(t testing.TB, name string, store driver.Store, opts ...election.Option) *play {
	t.Helper()
	return joinAnd(t, name, store, nil, opts...)
}

// joinAnd sets further actions of callbacks before the first callback.
func joinAnd(t testing.TB, name string, store driver.Store, on func(p *play, what string), opts ...election.Option) *play {
	t.Helper()
	p := draft(t, name)
	if on != nil {
		p.then(func(what string) { on(p, what) })
	}
	p.line = faults.New(store, 1, faults.Plan{})
	e, err := election.New(name, "billing", nil, p.options(append([]election.Option{election.WithStore(p.line), election.WithLease(lease)}, opts...)...)...)
	if err != nil {
		t.Fatal(err)
	}
	return p.begin(e)
}

// ended waits until Start has returned.
func (p *play) ended() {
	p.t.Helper()
	select {
	case err := <-p.done:
		if err != nil {
			p.t.Errorf("%s: Start returned %v", p.name, err)
		}
	case <-time.After(time.Minute):
		p.t.Fatalf("%s: Start has not returned", p.name)
	}
	if p.State() != election.UnknownState || p.IsLeader() || p.Token() != 0 || p.Term() != nil {
		p.t.Errorf("%s has ended: state %v, leader %v, token %d", p.name, p.State(), p.IsLeader(), p.Token())
	}
}

// leadsWithin waits until one of the plays leads, and returns how long that took.
func leadsWithin(t testing.TB, limit time.Duration, plays ...*play) (*play, time.Duration) {
	t.Helper()
	begin := time.Now()
	for ; time.Since(begin) <= limit; time.Sleep(time.Millisecond) {
		for _, p := range plays {
			if p.IsLeader() {
				return p, time.Since(begin)
			}
		}
	}
	t.Fatalf("no leader within %v", limit)
	return nil, 0
}

func (p *play) mustLead(within time.Duration) time.Duration {
	p.t.Helper()
	_, took := leadsWithin(p.t, within, p)
	synctest.Wait()
	if p.State() != election.LeaderState || p.Token() == 0 {
		p.t.Errorf("%s leads: state %v, token %d", p.name, p.State(), p.Token())
	}
	return took
}

// watchOver fails the test if two plays lead at once, or if OnWon is called for one before OnLost
// was called for the last leader.
func watchOver(t testing.TB, plays ...*play) {
	var mu sync.Mutex
	leader := ""
	for _, p := range plays {
		also := p.on
		p.then(func(what string) {
			if also != nil {
				also(what)
			}
			mu.Lock()
			defer mu.Unlock()
			switch {
			case what == "won" && leader != "":
				t.Errorf("OnWon of %s was called while %s leads", p.name, leader)
			case what == "won":
				leader = p.name
			case what == "lost" && leader == p.name:
				leader = ""
			}
		})
	}
}

func names(n int) []string {
	var all []string
	for i := range n {
		all = append(all, fmt.Sprintf("member %d", i+1))
	}
	return all
}

// over starts a play over a handle, like a program that comes from nats-kv-leader-elect.
func over(t testing.TB, name string, kv nats.KeyValue, opts ...election.Option) *play {
	t.Helper()
	p := draft(t, name)
	e, err := election.NewElection(name, "billing", kv, p.options(opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	return p.begin(e)
}

// TestOverAHandle: a fresh election, a crash, a graceful end and a deleted key, with ten candidates
// on one server.
func TestOverAHandle(t *testing.T) {
	onServer(t, func(w *world) {
		kv := w.bucket(ttl)
		var all []*play
		for _, name := range names(10) {
			all = append(all, over(w, name, kv))
		}
		watchOver(w, all...)
		first, took := leadsWithin(w, 2*lease, all...)
		w.Log("the first leads after", took)
		if took > lease+soon {
			w.Errorf("the first leads only after %v", took)
		}
		time.Sleep(5 * time.Minute)
		if !first.IsLeader() || first.State() != election.LeaderState {
			w.Error("does not keep leading")
		}
		token := first.Token()

		first.Stop()
		first.ended()
		second, took := leadsWithin(w, soon, all...)
		w.Log("the next one leads", took, "after an orderly end")
		if second.Token() <= token {
			w.Errorf("tokens %d, then %d", token, second.Token())
		}

		token = second.Token()
		w.must(kv.Delete("billing")) // as the nats command does
		time.Sleep(time.Millisecond)
		third, took := leadsWithin(w, lease, all...)
		w.Log("the next one leads", took+time.Millisecond, "after the key was deleted")
		if third == second || third.Token() <= token {
			w.Errorf("%s with token %d, then %s with %d", second.name, token, third.name, third.Token())
		}
	})
}

// TestOverAModernHandle lets elections over both kinds of handle compete.
func TestOverAModernHandle(t *testing.T) {
	onServer(t, func(w *world) {
		a := over(w, "a", w.bucket(ttl))
		a.mustLead(2 * lease)
		b := draft(w, "b")
		var its time.Duration
		kv, err := w.modern().KeyValue(w.Context(), "ELECTIONS")
		w.must(err)
		e, err := election.New("b", "billing", kv, b.options(election.Configure(func(c *tenure.Config) {
			its = c.Lease
		}))...)
		w.must(err)
		b.begin(e)
		watchOver(w, a, b)
		if its != lease {
			w.Errorf("the lease is %v", its)
		}
		a.Stop()
		b.mustLead(soon)
	})
}

// TestUnsafeBucketIsReported: a bucket can lose its data; users of nats-kv-leader-elect ask about
// that.
func TestUnsafeBucketIsReported(t *testing.T) {
	onServer(t, func(w *world) {
		a := over(w, "a", w.bucket(ttl))
		time.Sleep(soon)
		if all := fmt.Sprint(errors.Join(a.errors()...)); !strings.Contains(all, "storage") {
			w.Errorf("reported %v", all)
		}
	})
}

// TestMigrating: an old candidate leads, and the new one follows it. Then they change roles.
func TestMigrating(t *testing.T) {
	onServer(t, func(w *world) {
		kv := w.bucket(ttl)
		last, err := kv.Create("billing", []byte("member 0"))
		w.must(err)
		var leader atomic.Value
		a := over(w, "a", kv, election.Migrating(), election.Configure(func(c *tenure.Config) {
			c.OnEvent = func(e tenure.Event) {
				if e.Kind == tenure.EventLeader {
					leader.Store(e.Leader.ID)
				}
			}
		}))
		for range 5 {
			time.Sleep(ttl * 3 / 4)
			if last, err = kv.Update("billing", []byte("member 0"), last); err != nil || a.IsLeader() {
				w.Fatalf("the old leader is not left alone: %v, %v", err, a.IsLeader())
			}
			if id := leader.Load(); id != "member 0" {
				w.Errorf("takes %q for the leader", id)
			}
		}
		a.mustLead(2 * ttl) // the old one has crashed
		for range 5 {
			time.Sleep(ttl * 3 / 4)
			if _, err := kv.Create("billing", []byte("member 0")); err == nil || !a.IsLeader() {
				w.Fatalf("the new leader is not left alone: %v, %v", err, a.IsLeader())
			}
		}
		a.Stop()
		a.ended()
		time.Sleep(ttl + soon)
		_, err = kv.Create("billing", []byte("member 0"))
		w.must(err)
	})
}

// documented returns the subjects to which, by docs/nats-kv-leader-elect.md, a program over a
// handle must be allowed to publish.
func documented(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile("../../../docs/nats-kv-leader-elect.md")
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, m := range regexp.MustCompile(`(?m)^    "(\$[^"]+)"`).FindAllStringSubmatch(string(text), -1) {
		all = append(all, m[1])
	}
	if len(all) < 5 {
		t.Fatalf("the document lists %q", all)
	}
	return all
}

func withRights(rights []string) func(*server.Options) {
	return func(o *server.Options) {
		o.NoAuthUser, o.Users = "operator", []*server.User{
			{Username: "operator", Password: "s3cret"},
			{Username: "program", Password: "s3cret", Permissions: &server.Permissions{
				Publish: &server.SubjectPermission{Allow: rights}, Subscribe: &server.SubjectPermission{Allow: []string{"_INBOX.>"}},
			}},
		}
	}
}

// takesPart runs two candidates with these rights, one after the other, and reports whether both
// led.
func takesPart(t *testing.T, rights []string) (well bool) {
	onServer(t, func(w *world) {
		operator := w.bucket(ttl)
		var refusals atomic.Int64
		refused := nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
			if errors.Is(err, nats.ErrPermissionViolation) {
				refusals.Add(1)
			}
		})
		join := func(name string) *play {
			_, js := w.connect(nats.UserInfo("program", "s3cret"), refused)
			kv, err := js.KeyValue("ELECTIONS")
			if err != nil {
				return nil
			}
			p := draft(w, name)
			e, err := election.NewElection(name, "billing", kv, p.options()...)
			if err != nil {
				return nil
			}
			return p.begin(e)
		}
		a := join("a")
		if a == nil {
			return
		}
		time.Sleep(2 * lease)
		b := join("b")
		time.Sleep(3 * lease)
		first := a.IsLeader()
		w.must(operator.Delete("billing")) // reading this takes more requests than reading a record
		time.Sleep(lease)
		a.Stop()
		b.Stop()
		c := join("c")
		time.Sleep(soon)
		well = first && c.IsLeader() && refusals.Load() == 0
	}, withRights(rights))
	return well
}

// TestRights removes each of the documented rights in turn.
func TestRights(t *testing.T) {
	rights := documented(t)
	if !takesPart(t, rights) {
		t.Errorf("the documented rights do not do")
	}
	for i, right := range rights {
		if right == "$JS.FC.KV_ELECTIONS.>" {
			continue // a server asks for it after many writes
		}
		if takesPart(t, slices.Delete(slices.Clone(rights), i, i+1)) {
			t.Errorf("%s is not needed", right)
		}
	}
}
