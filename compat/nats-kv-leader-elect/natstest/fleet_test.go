package natstest

import (
	"context"
	"flag"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/compat/nats-kv-leader-elect/mixed"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/faults"
	"github.com/tenure-go/tenure/driver/natskv"
	"github.com/tenure-go/tenure/internal/test/migration"
	"github.com/tenure-go/tenure/internal/test/wait"
)

// conditions are the circumstances of a migration.
type conditions struct {
	lease time.Duration // 0: a third of the TTL
	// spoiled replaces the translation unless it is nil.
	spoiled natskv.Translator
	// handles lets Tenure candidates reach the bucket over a handle.
	handles bool
	// calm: no request is slow or lost.
	calm bool
}

// look is the time between two looks of the referee.
const look = 200 * time.Millisecond

// fleet is a bucket, up to three processes of each kind, and a referee.
type fleet struct {
	testing.TB
	*migration.Fleet
	cond conditions
	dial func() jetstream.JetStream // a connection for one process
	js   jetstream.JetStream        // the operator's

	mu sync.Mutex
	// deleted is the time at which a record was deleted under a Tenure leader, and victim is that
	// leader's term. The leader may not have noticed yet.
	deleted time.Time
	victim  uint64
	// The longest time for which an old candidate led beside a leader whose record was deleted.
	window time.Duration
}

// report is the referee's result.
type report struct {
	migration.Report
	window time.Duration
}

// inFleet runs a story in virtual time.
func inFleet(t *testing.T, seed uint64, cond conditions, story func(*fleet)) (r report) {
	t.Helper()
	onServer(t, func(w *world) {
		js := w.modern()
		// In memory, because messages in files expire by a clock outside the bubble.
		f := newFleet(w.TB, seed, cond, jetstream.MemoryStorage, func() jetstream.JetStream { return js })
		story(f)
		r.Report = f.Close()
		r.window = f.window
	})
	return r
}

func newFleet(t testing.TB, seed uint64, cond conditions, storage jetstream.StorageType, dial func() jetstream.JetStream) *fleet {
	if cond.lease == 0 {
		cond.lease = lease
	}
	f := &fleet{TB: t, cond: cond, dial: dial, js: dial()}
	_, err := f.js.CreateKeyValue(t.Context(), jetstream.KeyValueConfig{Bucket: "B", TTL: ttl, Storage: storage})
	if err != nil {
		t.Fatal(err)
	}
	f.Fleet = migration.New(seed, look, f.judge)
	return f
}

// unlimited hides the longest lease, as a program does that does not ask for it. The translation
// alone must then keep to it.
type unlimited struct{ driver.Store }

func (u unlimited) Abilities() driver.Abilities {
	a := driver.AbilitiesOf(u.Store)
	a.Bounded = anyLease{a.Bounded}
	return a
}

type anyLease struct{ driver.Bounded }

func (anyLease) MaxLease() time.Duration { return driver.MaxLease }

// bucket returns a handle over this connection.
func (f *fleet) bucket(js jetstream.JetStream) jetstream.KeyValue {
	f.Helper()
	kv, err := js.KeyValue(context.Background(), "B")
	if err != nil {
		f.Fatal(err)
	}
	return kv
}

// lag returns the delay of one message of an old candidate.
func (f *fleet) lag() time.Duration {
	if f.cond.calm {
		return time.Millisecond
	}
	return f.Between(0, 300*time.Millisecond)
}

// startOld starts an old candidate that campaigns in this interval while it does not lead.
func (f *fleet) startOld(i int, every time.Duration) *oldOne {
	o := &oldOne{id: fmt.Sprintf("server-%d", i), kv: f.bucket(f.dial()), renew: ttl / 4 * 3, every: every, lag: f.lag, won: f.Look}
	f.Put(i, o)
	o.start(f.lag())
	return o
}

// startNew starts a Tenure candidate with the same name.
func (f *fleet) startNew(i int) *migration.Candidate {
	f.Helper()
	js, migrating := f.dial(), mixed.Migrating()
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

func (f *fleet) startOn(i int, store *natskv.Store) *migration.Candidate {
	f.Helper()
	var plan faults.Plan
	if !f.cond.calm {
		plan = faults.Plan{MaxDelay: 300 * time.Millisecond, Chances: faults.Chances{
			faults.DelayBefore: 0.2, faults.DelayAfter: 0.2, faults.LoseAnswer: 0.03, faults.LoseRequest: 0.03,
			faults.Drop: 0.02, faults.Delay: 0.05,
		}}
	}
	line := faults.New(unlimited{store}, uint64(f.Between(0, time.Hour)), plan)
	n := &migration.Candidate{ID: fmt.Sprintf("server-%d", i), Line: line, Begun: f.Look, Ended: func() {
		line.Wait()
		_ = store.Close()
	}}
	e, err := tenure.New(line, "billing", tenure.Config{ID: n.ID, Lease: f.cond.lease})
	if err != nil {
		f.Fatal(err)
	}
	f.Put(3+i, n)
	n.Campaign(e)
	return n
}

// judge reports two leaders at once, unless both are old ones, or one is old and the other has not
// yet had the time to notice that its record was deleted.
func (f *fleet) judge(p, q migration.Process) string {
	n, ok := q.(*migration.Candidate)
	if !ok {
		return ""
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, old := p.(*oldOne); old && n.Token() == f.victim && time.Since(f.deleted) <= f.cond.lease {
		f.window = max(f.window, time.Since(f.deleted))
		return ""
	}
	return fmt.Sprintf("%s leads (term %d), and so does %s", n.Name(), n.Token(), p.Name())
}

// await waits until ok returns true, and records a fault if that takes longer than the limit.
func (f *fleet) await(what string, limit time.Duration, ok func() bool) {
	f.Check(wait.Within(limit, ok), "not within %v: %s", limit, what)
}

func (f *fleet) anyLeads() bool { _, p := f.Leader(); return p != nil }

// remove deletes the record like an operator: with a marker, or without a trace. It records a
// Tenure leader that loses its record.
func (f *fleet) remove(trace bool) {
	for i := range 3 {
		if n, ok := f.At(3 + i).(*migration.Candidate); ok && n.Leads() {
			f.mu.Lock()
			f.deleted, f.victim = time.Now(), n.Token()
			f.mu.Unlock()
		}
	}
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

// setClock moves the server's clock forward, so that records expire earlier by this time.
func (f *fleet) setClock(by time.Duration) {
	s, err := f.js.Stream(context.Background(), "KV_B")
	if err != nil {
		f.Error(err)
		return
	}
	m, err := s.GetLastMsgForSubject(context.Background(), "$KV.B.billing")
	if err != nil || time.Since(m.Time) <= ttl-by {
		return
	}
	if err := s.Purge(context.Background(), jetstream.WithPurgeSubject(m.Subject), jetstream.WithPurgeSequence(m.Sequence+1)); err != nil {
		f.Error(err)
	}
}

// oldOne is a candidate of nats-kv-leader-elect, as its documentation describes it. It campaigns
// every three quarters of the TTL, or more often with a back-off: it Creates the key, which
// succeeds if the key is absent or deleted. Then it leads, and every three quarters of the TTL it
// Updates the key with the last sequence. When an Update fails, it stops leading. It never reads,
// and releases nothing when it ends.
//
// It counts as leading from when the server applied its Create until it receives the answer to a
// failed Update.
type oldOne struct {
	id    string
	kv    jetstream.KeyValue
	renew time.Duration // between two Updates
	every time.Duration // between two Creates
	lag   func() time.Duration
	won   func() // called when it begins to lead

	mu      sync.Mutex
	leading bool
	last    uint64

	die  chan struct{}
	done chan struct{}
}

// oldPatience is the time limit of the client library.
const oldPatience = 5 * time.Second

// start campaigns for the first time after this delay.
func (o *oldOne) start(first time.Duration) {
	o.die, o.done = make(chan struct{}), make(chan struct{})
	go func() {
		defer close(o.done)
		for wait := first; o.sleep(wait); {
			begun := time.Now()
			wait = o.campaign() - time.Since(begun)
		}
	}()
}

// sleep returns false as soon as the process has died.
func (o *oldOne) sleep(d time.Duration) bool {
	select {
	case <-o.die:
		return false
	case <-time.After(d):
		return true
	}
}

// campaign returns the time from its beginning to the next campaign.
func (o *oldOne) campaign() time.Duration {
	if !o.sleep(o.lag()) {
		return 0
	}
	ctx, cancel := context.WithTimeout(context.Background(), oldPatience)
	defer cancel()
	var err error
	if o.Leads() {
		o.last, err = o.kv.Update(ctx, "billing", []byte(o.id), o.last)
	} else {
		o.last, err = o.kv.Create(ctx, "billing", []byte(o.id))
	}
	if err == nil {
		o.lead(true)
		return o.renew
	}
	o.sleep(o.lag())
	o.lead(false)
	return o.every
}

func (o *oldOne) lead(yes bool) {
	o.mu.Lock()
	select {
	case <-o.die:
		yes = false
	default:
	}
	begins := yes && !o.leading
	o.leading = yes
	o.mu.Unlock()
	if begins {
		o.won()
	}
}

func (o *oldOne) Leads() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.leading
}

func (o *oldOne) Name() string { return "old " + o.id }

// End does the same for a crash, because old candidates release nothing.
func (o *oldOne) End(bool) {
	close(o.die)
	o.lead(false)
	<-o.done
}

var migrations = flag.Int("migrations", 4, "how many fleets TestRollingMigration replaces")

// migrate replaces the old candidates one by one, while other things happen.
func (f *fleet) migrate() {
	f.Migrate(2*ttl, 2*ttl+lease, func(i int) { f.startOld(i, f.often()) }, func(i int) { f.startNew(i) }, f.happen)
}

// often returns how often an old candidate campaigns: by its documentation, or with a back-off.
func (f *fleet) often() time.Duration {
	if f.Draw(2) == 0 {
		return ttl / 4 * 3
	}
	return f.Between(2*time.Second, 12*time.Second)
}

// happen lets one thing happen to a candidate.
func (f *fleet) happen(i int) {
	switch kind := f.Draw(10); kind {
	case 0, 1:
		f.remove(kind == 0)
		if f.Draw(2) == 0 { // and again, at a bad time
			time.Sleep(f.Between(0, 10*time.Second))
			f.remove(kind == 0)
		}
	case 2:
		f.setClock(f.Between(0, ttl/3*2))
	case 3, 4, 5:
		if p, ok := f.At(i).(*migration.Candidate); ok {
			undo := p.Trouble(kind == 3, time.Second)
			time.Sleep(f.Between(time.Second, 45*time.Second))
			undo()
		}
	default:
		f.End(i, kind < 8)
		time.Sleep(f.Between(0, ttl))
		if i < 3 {
			f.startOld(i, f.often())
		} else {
			f.startNew(i - 3)
		}
	}
}

func TestRollingMigration(t *testing.T) {
	seeds := *migrations
	var sum report
	for seed := range uint64(seeds) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			r := inFleet(t, seed, conditions{handles: seed%4 == 3}, (*fleet).migrate)
			r.Require(t)
			sum.Add(r.Report)
			sum.window = max(sum.window, r.window)
		})
	}
	t.Logf("%v; beside a leader whose record was deleted an old one led for at most %v", sum.Report, sum.window)
	if sum.OldToNew < seeds || sum.NewToOld < seeds/2 || sum.window == 0 && seeds >= 40 {
		t.Errorf("%v, window %v: nothing is proved by that", sum.Report, sum.window)
	}
}
