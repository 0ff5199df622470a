package natstest

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
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
