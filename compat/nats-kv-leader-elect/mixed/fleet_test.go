package mixed

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/tenure-go/tenure/compat/nats-kv-leader-elect/internal/inprocess"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/faults"
	"github.com/tenure-go/tenure/driver/natskv"
	"github.com/tenure-go/tenure/internal/test/wait"
)

// participant is a process of either kind.
type participant interface {
	name() string
	leads() bool
	end(crash bool)
}

// conditions are the circumstances of a migration.
type conditions struct {
	lease time.Duration
	// spoiled replaces the translation unless it is nil.
	spoiled natskv.Translator
	// handles lets Tenure candidates reach the bucket over a handle.
	handles bool
	// calm: no request is slow or lost.
	calm bool
}

const (
	// fleetTTL is the shortest TTL that nats-kv-leader-elect accepts.
	fleetTTL   = 30 * time.Second
	fleetLease = 10 * time.Second
	look       = 200 * time.Millisecond
)

// fleet is a bucket, up to three processes of each kind, and a referee.
type fleet struct {
	*testing.T
	rng  *rand.Rand
	cond conditions
	ttl  time.Duration
	dial func() jetstream.JetStream // a connection for one process
	js   jetstream.JetStream        // the operator's
	stop chan struct{}
	over sync.Once
	done chan struct{}

	mu     sync.Mutex
	places [6]participant // first the old candidates, then the new ones
	report report
	last   participant
	gap    time.Duration
	// deleted is the time at which a record was deleted under a Tenure leader, and victim is that
	// leader's term. The leader may not have noticed yet.
	deleted time.Time
	victim  uint64
}

// report is the referee's result.
type report struct {
	faults             []string
	steps              int
	all, led, longest  time.Duration // longest: without a leader
	oldToNew, newToOld int
	// The longest time for which an old candidate led beside a leader whose record was deleted.
	window                time.Duration
	token, tokensNotAbove uint64
}

// inFleet runs a story in virtual time.
func inFleet(t *testing.T, seed uint64, cond conditions, story func(*fleet)) (r report) {
	t.Helper()
	if cond.lease == 0 {
		cond.lease = fleetLease
	}
	inprocess.Bubble(t, func(t *testing.T) {
		js := newJetStream(t, inprocess.Connect(t, inprocess.Start(t, &server.Options{})))
		// In memory, because messages in files expire by a clock outside the bubble.
		f := newFleet(t, seed, cond, fleetTTL, jetstream.MemoryStorage, func() jetstream.JetStream { return js })
		story(f)
		r = f.close()
	})
	return r
}

func newFleet(t *testing.T, seed uint64, cond conditions, ttl time.Duration, storage jetstream.StorageType, dial func() jetstream.JetStream) *fleet {
	f := &fleet{
		T: t, rng: rand.New(rand.NewPCG(seed, 1)), cond: cond, ttl: ttl, dial: dial, js: dial(), stop: make(chan struct{}), done: make(chan struct{}),
	}
	_, err := f.js.CreateKeyValue(t.Context(), jetstream.KeyValueConfig{Bucket: "B", TTL: ttl, Storage: storage})
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(f.done)
		for {
			select {
			case <-f.stop:
				return
			case <-time.After(look):
				f.look(look)
			}
		}
	}()
	return f
}

// unlimited hides the longest lease, as a program does that does not ask for it. The translation
// alone must then keep to it.
type unlimited struct{ driver.Store }

func (u unlimited) Abilities() driver.Abilities {
	a := driver.AbilitiesOf(u.Store)
	a.LeaseLimiter = nil
	return a
}

// close ends all processes. It may be called twice.
func (f *fleet) close() report {
	for i := range f.places {
		f.end(i, false)
	}
	f.over.Do(func() { close(f.stop) })
	<-f.done
	return f.report
}

// bucket returns a handle over this connection.
func (f *fleet) bucket(js jetstream.JetStream) jetstream.KeyValue {
	f.Helper()
	kv, err := js.KeyValue(context.Background(), "B")
	if err != nil {
		f.Fatal(err)
	}
	return kv
}

func (f *fleet) between(least, most time.Duration) time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	return least + time.Duration(f.rng.Int64N(int64(most-least)+1))
}

func (f *fleet) put(i int, p participant) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.places[i] = p
}

func (f *fleet) at(i int) participant {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.places[i]
}

// lag returns the delay of one message of an old candidate.
func (f *fleet) lag() time.Duration {
	if f.cond.calm {
		return time.Millisecond
	}
	return f.between(0, 300*time.Millisecond)
}

// startOld starts an old candidate that campaigns in this interval while it does not lead.
func (f *fleet) startOld(i int, every time.Duration) *oldOne {
	o := &oldOne{id: fmt.Sprintf("server-%d", i), kv: f.bucket(f.dial()), renew: f.ttl / 4 * 3, every: every, lag: f.lag, won: f.begin}
	f.put(i, o)
	o.start(f.lag())
	return o
}

// startNew starts a Tenure candidate with the same name.
func (f *fleet) startNew(i int) *newOne {
	f.Helper()
	js, migrating := f.dial(), Migrating()
	if f.cond.spoiled != nil {
		migrating = natskv.Translating(f.cond.spoiled)
	}
	if f.cond.handles {
		return f.startOn(i, natskv.FromKeyValue(f.bucket(js), migrating))
	}
	return f.startOn(i, f.open(js, migrating))
}

func (f *fleet) open(js jetstream.JetStream, opts ...natskv.Option) *natskv.Store {
	f.Helper()
	store, err := natskv.Open(context.Background(), js, "B", opts...)
	if err != nil {
		f.Fatal(err)
	}
	return store
}

func (f *fleet) startOn(i int, store *natskv.Store) *newOne {
	f.Helper()
	var plan faults.Plan
	if !f.cond.calm {
		plan = faults.Plan{MaxDelay: 300 * time.Millisecond, Chances: faults.Chances{
			faults.DelayBefore: 0.2, faults.DelayAfter: 0.2, faults.LoseAnswer: 0.03, faults.LoseRequest: 0.03,
			faults.Drop: 0.02, faults.Delay: 0.05,
		}}
	}
	n := &newOne{id: fmt.Sprintf("server-%d", i), store: store, line: faults.New(unlimited{store}, uint64(f.between(0, time.Hour)), plan), won: f.begin}
	f.put(3+i, n)
	if err := n.start(f.cond.lease); err != nil {
		f.Fatal(err)
	}
	return n
}

func (f *fleet) end(i int, crash bool) {
	p := f.at(i)
	if p == nil {
		return
	}
	p.end(crash)
	f.put(i, nil)
}

// leader returns a leader and its place, or nil.
func (f *fleet) leader() (int, participant) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i, p := range f.places {
		if p != nil && p.leads() {
			return i, p
		}
	}
	return 0, nil
}

// begin is called when a candidate begins to lead. If another one leads at that time, there are two
// leaders.
func (f *fleet) begin() { f.look(0) }

func (f *fleet) look(d time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var leading []participant
	for _, p := range f.places {
		if p != nil && p.leads() {
			leading = append(leading, p)
		}
	}
	f.report.all += d
	if len(leading) > 0 {
		f.report.led += d
		f.gap = 0
	}
	f.gap += d
	f.report.longest = max(f.report.longest, f.gap)
	for i, p := range leading {
		for _, q := range leading[:i] {
			f.judge(q, p)
		}
	}
	if len(leading) == 1 && leading[0] != f.last {
		f.turn(leading[0])
	}
}

// judge reports two leaders at once. If one of them is an old one, it is the first argument. Two
// old leaders are not reported.
func (f *fleet) judge(old, other participant) {
	n, ok := other.(*newOne)
	if !ok {
		return
	}
	if _, ok := old.(*oldOne); ok && n.token() == f.victim && time.Since(f.deleted) <= f.cond.lease {
		f.report.window = max(f.report.window, time.Since(f.deleted))
		return
	}
	f.fault("%s leads (term %d), and so does %s", n.name(), n.token(), old.name())
}

// fault must be called with the lock held.
func (f *fleet) fault(format string, args ...any) {
	if len(f.report.faults) < 5 {
		f.report.faults = append(f.report.faults, fmt.Sprintf("%v: ", f.report.all)+fmt.Sprintf(format, args...))
	}
}

// check records a fault unless ok is true.
func (f *fleet) check(ok bool, format string, args ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !ok {
		f.fault(format, args...)
	}
}

// turn records each leader and the one before it.
func (f *fleet) turn(p participant) {
	if f.last != nil {
		_, wasOld := f.last.(*oldOne)
		_, isOld := p.(*oldOne)
		switch {
		case wasOld && !isOld:
			f.report.oldToNew++
		case isOld && !wasOld:
			f.report.newToOld++
		}
	}
	f.last = p
	if n, ok := p.(*newOne); ok {
		if n.token() <= f.report.token {
			f.report.tokensNotAbove++
		}
		f.report.token = n.token()
	}
}

// await waits until ok returns true, and records a fault if that takes longer than the limit.
func (f *fleet) await(what string, limit time.Duration, ok func() bool) {
	f.check(wait.Within(limit, ok), "not within %v: %s", limit, what)
}

// remove deletes the record like an operator: with a marker, or without a trace. It records a
// Tenure leader that loses its record.
func (f *fleet) remove(trace bool) {
	f.mu.Lock()
	for _, p := range f.places {
		if n, ok := p.(*newOne); ok && n.leads() {
			f.deleted, f.victim = time.Now(), n.token()
		}
	}
	f.mu.Unlock()
	var err error
	if trace {
		err = f.bucket(f.js).Delete(context.Background(), "billing")
	} else {
		err = purge(context.Background(), f.js, "billing")
	}
	if err != nil {
		f.Error(err)
	}
}

// purge removes the messages of a key, including the marker, which "nats kv purge" leaves.
func purge(ctx context.Context, js jetstream.JetStream, key string) error {
	stream, err := js.Stream(ctx, "KV_B")
	if err != nil {
		return err
	}
	return stream.Purge(ctx, jetstream.WithPurgeSubject("$KV.B."+key))
}

func newJetStream(t testing.TB, nc *nats.Conn) jetstream.JetStream {
	t.Helper()
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	return js
}

// setClock moves the server's clock forward, so that records expire earlier by this time.
func (f *fleet) setClock(by time.Duration) {
	s, err := f.js.Stream(context.Background(), "KV_B")
	if err != nil {
		f.Error(err)
		return
	}
	m, err := s.GetLastMsgForSubject(context.Background(), "$KV.B.billing")
	if err != nil || time.Since(m.Time) <= f.ttl-by {
		return
	}
	if err := s.Purge(context.Background(), jetstream.WithPurgeSubject(m.Subject), jetstream.WithPurgeSequence(m.Sequence+1)); err != nil {
		f.Error(err)
	}
}
