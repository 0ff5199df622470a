//go:build integration

package stores

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/clock"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/faults"
	"github.com/tenure-go/tenure/driver/memory"
	"github.com/tenure-go/tenure/driver/s3object"
	"github.com/tenure-go/tenure/internal/test/wait"
	"github.com/tenure-go/tenure/internal/witness"
	"github.com/tenure-go/tenure/schedule"
	"github.com/tenure-go/tenure/test/internal/machine"
	"github.com/tenure-go/tenure/test/internal/rig"
	"github.com/tenure-go/tenure/test/internal/s3fake"
)

// offClock is a clock with a wrong time of day, which can change.
type offClock struct {
	clock.Clock
	off *atomic.Int64
}

// Now returns the reading of the inner clock with a wrong time of day.
func (c offClock) Now() clock.Reading {
	r := c.Clock.Now()
	r.Wall = r.Wall.Add(time.Duration(c.off.Load()))
	return r
}

// ticking is one election whose members run jobs, and the witness of the first acts of each tick.
type ticking struct {
	testing.TB
	key    string
	rng    *rand.Rand
	offset time.Duration // how far each wall clock may be off
	naive  bool          // the jobs have no record: a planted mistake
	book   witness.Ticks
	runs   atomic.Int64
	all    []*ticker
	leader atomic.Pointer[ticker]
}

// ticker is a member.
type ticker struct {
	id    string
	store driver.Store
	way   rig.Way
	clock offClock
	leave func()
}

const (
	// members is the number of members at any time, and alike that of jobs of each kind.
	members = 3
	alike   = 4
)

// The kinds of jobs: their ticks run at most once, lost ticks run again, or all ticks are caught up
// with.
const (
	atMostOnce  = "once"
	atLeastOnce = "again"
	catchingUp  = "all"
)

// jobs returns the jobs of a member.
func (k *ticking) jobs(m *ticker) (some []schedule.Job) {
	for _, kind := range []string{atMostOnce, atLeastOnce, catchingUp} {
		for i := range alike {
			j := schedule.Every("@every 1s").Named(fmt.Sprint(kind, "-", i))
			j.Window, j.AtLeastOnce = 2*time.Minute, kind == atLeastOnce
			if kind == catchingUp {
				j.Spec, j.CatchUp, j.Queue = "@every 2s", schedule.CatchUpAll, true
			}
			some = append(some, j.Do(func(ctx context.Context, t schedule.Tick) error { return k.work(ctx, m, t) }))
		}
	}
	return some
}

// work acts for up to a second and a half. It takes the stamp of each act before it asks whether it
// may act, so that an answer is never older than its stamp.
func (k *ticking) work(ctx context.Context, m *ticker, t schedule.Tick) error {
	term, _ := tenure.FromContext(ctx)
	run := witness.Run{Job: t.Job, Planned: t.Planned.Unix(), Again: strings.HasPrefix(t.Job, atLeastOnce), Attempt: t.Attempt, Token: t.Token, Who: m.id,
		Number: int(k.runs.Add(1))}
	for end := time.Now().Add(rand.N(1500 * time.Millisecond)); time.Now().Before(end); time.Sleep(2 * time.Millisecond) {
		at := machine.Now()
		if err := term.Err(); err != nil {
			return err
		}
		k.book.Add(run, at)
	}
	return ctx.Err()
}

// lead runs the jobs of a member as its leader.
func (k *ticking) lead(m *ticker, store driver.Store) tenure.Lead {
	s, err := schedule.New(store, k.key, schedule.Config{ClockOffset: k.offset, OnEvent: func(e schedule.Event) {
		if e.Kind == schedule.EventHistory || e.Kind == schedule.EventLost || e.Kind == schedule.EventClock {
			k.Logf("%s: %s of %s: %s", m.id, e.Kind, e.Job, e.Reason)
		}
	}}, k.jobs(m)...)
	rig.Must(k, err)
	return func(ctx context.Context, t *tenure.Term) error {
		k.leader.Store(m)
		if k.naive {
			return k.leadNaively(ctx, m, t)
		}
		return s.Lead(ctx, t)
	}
}

// leadNaively runs each tick that comes due by the leader's clock.
func (k *ticking) leadNaively(ctx context.Context, m *ticker, term *tenure.Term) error {
	for next := m.clock.Now().Wall.Truncate(time.Second); ; next = next.Add(time.Second) {
		if rig.Sleep(ctx, next.Sub(m.clock.Now().Wall)); ctx.Err() != nil {
			return nil
		}
		for _, j := range k.jobs(m) {
			k.book.Add(witness.Run{Job: j.Name, Planned: next.Unix(), Attempt: 1, Token: term.Token(), Who: m.id}, machine.Now())
		}
	}
}

func (k *ticking) join(store driver.Store, way rig.Way) *ticker {
	k.Helper()
	m := &ticker{id: fmt.Sprint("c", len(k.all)), store: store, way: way, clock: offClock{clock.System{}, &atomic.Int64{}}}
	k.setClock(m)
	e, err := tenure.New(store, k.key, tenure.Config{ID: m.id, Lease: brief, Clock: m.clock})
	rig.Must(k, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	lead := k.lead(m, store)
	go func() { done <- e.Run(ctx, lead) }()
	left := false
	m.leave = func() {
		if left {
			return
		}
		left = true
		cancel()
		if err := <-done; err != nil {
			k.Errorf("Run of %s: %v", m.id, err)
		}
	}
	k.Cleanup(m.leave)
	k.all = append(k.all, m)
	return m
}

// setClock sets the wall clock of a member within the bound.
func (k *ticking) setClock(m *ticker) {
	m.clock.off.Store(k.rng.Int64N(2*int64(k.offset)+1) - int64(k.offset))
}

// ticks waits until each job has run a few times more.
func (k *ticking) ticks(what string) {
	k.Helper()
	now := machine.Now()
	least := 1 + k.rng.IntN(3)
	wait.Until(k, "ticks of each job, "+what, func() bool {
		return !slices.ContainsFunc(k.jobs(nil), func(j schedule.Job) bool { return k.book.Begun(j.Name, now) < least })
	})
	k.Logf("each job ran %s within %v", what, time.Duration(machine.Now()-now).Round(time.Millisecond))
}

// judge judges all acts.
func (k *ticking) judge() {
	v := k.book.Judge()
	k.Log(v)
	if !v.Safe() {
		k.Error(v)
	}
}

// trouble is done to members that run jobs.
type trouble struct {
	name string
	make func(k *ticking)
}

// TestTicks: members whose wall clocks differ run jobs, each second, while servers and networks
// fail and operators change the store. No two runs of a job overlap, and no tick runs twice. In the
// end each job runs.
func TestTicks(t *testing.T) {
	apart(t, func(t *testing.T, r rig.Rig) {
		faulty(t, r)
		if testing.Short() && (r.SoakElections || r.Shared || r.Kind.URL == nil) {
			t.Skip("the soak does it")
		}
		s := r.Start(t, false)
		seed := rand.Uint64()
		t.Logf("seed %d", seed)
		k := newTicking(t, seed)
		stores, ways := three(t, s)
		if b := driver.AbilitiesOf(stores[0]).Bounded; b != nil {
			if err := b.CheckKey(k.key + "/jobs/name"); err != nil {
				t.Skip("the keys of jobs are not for this store: ", err)
			}
		}
		k.play(stores, ways, troubles(t, s, ways[0] != nil))
	})
}

// TestTicksOnObjects is TestTicks on a stand-in for S3. The rigs of object storage keep objects as
// files, so that no key is the folder of another.
func TestTicksOnObjects(t *testing.T) {
	if testing.Short() {
		t.Skip("the soak does it")
	}
	t.Parallel()
	server, err := s3fake.Start(rand.Uint64(), s3fake.Plan{}, "bucket")
	rig.Must(t, err)
	t.Cleanup(server.Close)
	var stores []driver.Store
	for range members {
		store, err := s3object.New(server.Client(), "bucket")
		rig.Must(t, err)
		stores = append(stores, store)
	}
	leaves := trouble{"the leader leaves", func(k *ticking) { k.replace(k.leader.Load()) }}
	newTicking(t, rand.Uint64()).play(stores, make([]rig.Way, members), []trouble{leaves, leaves})
}

// play lets members run jobs over these stores, whose requests are lost, late and repeated, makes
// each trouble, and judges.
func (k *ticking) play(stores []driver.Store, ways []rig.Way, troubles []trouble) {
	for i, inner := range stores {
		failing := faults.New(inner, k.rng.Uint64(), faults.Plan{MaxDelay: 300 * time.Millisecond, Chances: faults.Chances{
			faults.LoseAnswer: 0.02, faults.LoseRequest: 0.02, faults.LandLate: 0.02, faults.DelayAfter: 0.02, faults.Replay: 0.02,
		}})
		k.Cleanup(failing.Wait)
		k.join(failing, ways[i])
	}
	k.ticks("at first")
	for _, x := range troubles {
		k.Log(x.name)
		x.make(k)
		for _, m := range k.all {
			k.setClock(m)
		}
		k.ticks("after: " + x.name)
	}
	for _, m := range k.all {
		m.leave()
	}
	k.judge()
}

func newTicking(t *testing.T, seed uint64) *ticking {
	name := strings.ToLower(strings.NewReplacer("/", "-", "_", "-", " ", "-").Replace(t.Name()))
	k := &ticking{TB: t, key: name, rng: rand.New(rand.NewPCG(seed, 0)), offset: 10 * time.Second}
	if testing.Short() {
		k.offset = time.Second / 4 // so that the ticks of a new job are skipped for less time
	}
	return k
}

// troubles returns those that a site has. The short pass has few.
func troubles(t *testing.T, s rig.Site, network bool) (all []trouble) {
	add := func(name string, do func(k *ticking)) { all = append(all, trouble{name, do}) }
	if network {
		add("the leader is cut off", func(k *ticking) {
			way := k.leader.Load().way
			way.Blackhole()
			time.Sleep(brief * 3 / 2)
			way.Heal()
		})
	}
	if !network || !testing.Short() {
		add("the leader leaves", func(k *ticking) { k.replace(k.leader.Load()) })
	}
	if testing.Short() {
		return all
	}
	for _, f := range s.Faults() {
		add("server "+f.Name, func(k *ticking) {
			rise := f.Fall(t, k.rng)
			time.Sleep(max(f.Lasts, brief*3/2))
			rise()
		})
	}
	kit := s.Kit(t)
	if kit.Delete != nil {
		add("the states of the jobs are deleted", func(k *ticking) {
			for _, j := range k.jobs(nil) {
				wait.Succeeds(t, "the deletion", func(ctx context.Context) error { return kit.Delete(ctx, k.key+"/jobs/"+j.Name) })
			}
		})
	}
	if kit.Recreate != nil && (network || kit.FloorTick > 0) {
		add("the store is recreated", func(*ticking) { wait.Succeeds(t, "the recreation", kit.Recreate) })
	}
	if r, ok := s.(rig.Restorer); ok && r.Restores() {
		add("the store is restored", func(k *ticking) {
			restore := r.Backup(t)
			k.ticks("after the backup")
			restore()
		})
		add("the store is restored while no member runs", func(k *ticking) { k.restoreAlone(r.Backup(t)) })
	}
	return all
}

// restoreAlone restores the store between the end of all members and the beginning of others. The
// ticks of the lost time may run again if the store does not show it.
func (k *ticking) restoreAlone(restore func()) {
	k.ticks("after the backup")
	old := slices.Clone(k.all)
	for _, m := range old {
		m.leave()
	}
	restore()
	k.book.Excuse(time.Now().Add(brief + 4*k.offset).Unix())
	for _, m := range old[len(old)-members:] {
		k.join(m.store, m.way)
	}
}

// replace lets another member take the place of one that leaves.
func (k *ticking) replace(m *ticker) {
	m.leave()
	k.join(m.store, m.way)
}

// TestNaiveTicks is the control of TestTicks: leaders that keep no record of ticks run some twice.
func TestNaiveTicks(t *testing.T) {
	k := newTicking(t, 1)
	k.naive, k.offset = true, 2*time.Second
	store := memory.New()
	wait.Until(t, "a tick that runs twice", func() bool {
		old := k.leader.Load()
		m := k.join(store, nil)
		wait.Until(t, "the new leader", func() bool { return k.leader.Load() != old })
		k.ticks("of " + m.id)
		m.leave()
		return k.book.Judge().Repeated > 0
	})
}
