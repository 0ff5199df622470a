package tenure_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/memory"
)

func TestGroupElectionsShareSettingsUntilReconfigured(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memory.New()
		var events atomic.Int64
		g := mustNewGroup(t, store, "a", func(c *tenure.Config) {
			c.Metadata, c.OnEvent = map[string]string{"zone": "1"}, func(tenure.Event) { events.Add(1) }
		})
		first, second := g.election(), g.election("other")
		reconfigure(t, first, func(c *tenure.Config) { c.Lease = time.Minute })
		if c := configOf(t, second); second.Name() != "other" || second.ID() != "a" || c.Lease != lease || c.Metadata["zone"] != "1" {
			t.Errorf("the other is %s of %s, with %+v", second.Name(), second.ID(), c)
		}
		a, b := start(t, first, holdOn), start(t, second, holdOn)
		within(t, time.Minute, a.won, "term of one")
		within(t, time.Minute, b.won, "term of the other")
		one := first.Status()
		other := second.Status()
		if one.Leader.Incarnation == other.Leader.Incarnation || one.Record.Lease == other.Record.Lease {
			t.Errorf("two elections hold the records %+v and %+v", one.Record, other.Record)
		}
		_, _ = a.end(t), b.end(t)
		if events.Load() == 0 {
			t.Error("no election had an event")
		}
	})
}

func TestGroupReportsInvalidUse(t *testing.T) {
	g := mustNewGroup(t, memory.New(), "a", nil)
	alone := mustNewGroup(t, memory.New(), "a", func(c *tenure.Config) { c.NomineeOnly = true })
	_, atNew := tenure.NewGroup(memory.New(), tenure.Config{Nominator: &silentNominator{}})
	_, noStore := tenure.NewGroup(nil, tenure.Config{})
	_, noName := g.Election("", nil)
	_, longName := g.Election(strings.Repeat("x", 513), nil)
	_, noNominator := alone.Election("job", nil)
	_, foreign := g.Join(t.Context(), mustNewGroup(t, memory.New(), "b", nil).election(), tenure.Lead(holdOn))
	for why, err := range map[string]error{
		"Nominator is set":        atNew,
		"the store is nil":        noStore,
		"the name is empty":       noName,
		"longer than 512":         longName,
		"NomineeOnly is true":     noNominator,
		"it is not of this group": foreign,
	} {
		if err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("error %v, which does not say %q", err, why)
		}
	}
	mine := &silentNominator{}
	e, err := alone.Election("its own", mine)
	if err != nil || configOf(t, e).Nominator != mine {
		t.Errorf("the Nominator is %v, error %v", configOf(t, e).Nominator, err)
	}
}

// silentNominator nominates no candidate.
type silentNominator struct{ _ int }

func (*silentNominator) Nominate(func(bool)) func() { return func() {} }

// TestManyElectionsAreSmall checks the memory of one election among many in a process, at the mean
// of a follower and a leader: at most 2.5 KB of heap in a bubble, which itself uses 400 bytes of
// it, and no goroutine. A leader has renewed once by then. The test subtracts the memory of the
// store in this process. Its maps grow by chance while one or the other is measured, so only the
// mean is sure.
func TestManyElectionsAreSmall(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes seconds")
	}
	synctest.Test(t, manyElectionsAreSmall) // with no call in progress during the measurement
}

func manyElectionsAreSmall(t *testing.T) {
	const many = 3000
	names := make([]string, many)
	for i := range names {
		names[i] = fmt.Sprintf("%s-%04d", key, i)
	}
	store, spare := memory.New(), memory.New()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	crowd(2 * many)
	var ends []<-chan error
	all := 0
	for _, id := range []string{"leader", "follower"} {
		before := heap()
		for _, name := range names {
			spare.Put(name, make([]byte, 200)) // the size of a record
			if _, err := spare.Watch(ctx, name, func(driver.Entry) {}); err != nil {
				t.Fatal(err)
			}
			if _, err := spare.Announce(ctx, name, func() []byte { return nil }); err != nil {
				t.Fatal(err)
			}
		}
		part := heap() - before
		before, goroutines := heap(), runtime.NumGoroutine()
		ends = append(ends, startAll(ctx, t, store, id, names)...)
		synctest.Wait()
		all += heap() - before - part
		if n := runtime.NumGoroutine() - goroutines; n > 0 {
			t.Errorf("%s: %d goroutines", id, n)
		}
	}
	if each := all / (2 * many); each > 2500 || each < 1000 { // the bubble uses 400 of them
		t.Errorf("%d bytes each", each)
	}
	runtime.KeepAlive(spare)
	stop()
	for _, end := range ends {
		<-end
	}
}

// crowd lets the runtime create goroutines, which it keeps for reuse when they have ended.
// Otherwise the number of new ones would depend on chance.
func crowd(n int) {
	var all sync.WaitGroup
	end := make(chan struct{})
	for range n {
		all.Go(func() { <-end })
	}
	close(end)
	all.Wait()
}

// startAll starts elections with these names and returns when each has a leader.
func startAll(ctx context.Context, t *testing.T, store driver.Store, id string, names []string) []<-chan error {
	t.Helper()
	g := mustNewGroup(t, store, id, func(c *tenure.Config) { c.Lease, c.Clock = tenure.MaxLease, nil })
	all := make([]*tenure.Election, 0, len(names))
	for _, name := range names {
		all = append(all, g.election(name))
	}
	ends := g.joinAll(ctx, all, &termCounter{})
	for _, e := range all {
		if _, err := e.Wait(ctx, func(s tenure.Status) bool { return s.Leader.Exists() }); err != nil {
			t.Fatal(err)
		}
	}
	return ends
}

// heap returns the heap in use after a collection. A second collection frees the objects that
// finalizers released in the first.
func heap() int {
	runtime.GC()
	runtime.GC()
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	return int(s.HeapAlloc)
}

// concurrency records the largest number of concurrent reads.
type concurrency struct {
	driver.Store
	slow      time.Duration
	now, most atomic.Int64
}

func (w *concurrency) Read(ctx context.Context, key string) (driver.Entry, error) {
	for n := w.now.Add(1); ; {
		if most := w.most.Load(); n <= most || w.most.CompareAndSwap(most, n) {
			break
		}
	}
	defer w.now.Add(-1)
	select {
	case <-time.After(w.slow):
	case <-ctx.Done():
	}
	return w.Store.Read(ctx, key)
}

func TestGroupLimitsConcurrentStoreCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const many = 1000
		store := &concurrency{Store: memory.NewPolled(), slow: 10 * time.Millisecond}
		ctx, stop := context.WithCancel(t.Context())
		work := &termCounter{}
		g := mustNewGroup(t, store, "a", nil)
		ends := g.joinAll(ctx, g.elections(many), work)
		time.Sleep(lease)
		if most := store.most.Load(); most > 256 || most < 100 || work.led.Load() != many {
			t.Errorf("%d calls at once, and %d of %d elections led", most, work.led.Load(), many)
		}
		stop()
		for _, done := range ends {
			if err := within(t, time.Minute, done, "end"); err != nil {
				t.Errorf("it ended with %v", err)
			}
		}
	})
}

// leadAmongMany starts a leader and, after a pause, so many elections of its group that reading for
// all of them takes longer than the lease.
func leadAmongMany(t *testing.T, store driver.Store, pause time.Duration) (term *tenure.Term, end func()) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	g := mustNewGroup(t, store, "a", nil)
	all := g.elections(3_000)
	leader := start(t, all[0], holdOn)
	term = within(t, time.Minute, leader.won, "term")
	time.Sleep(pause)
	ends := g.joinAll(ctx, all[1:], tenure.Lead(holdOn))
	return term, func() {
		stop()
		for _, done := range ends {
			<-done
		}
		_ = leader.end(t)
	}
}

// Leaders are renewed in time while many other elections start: their calls have priority.
func TestGroupCallsTheStoreForLeadersFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		term, end := leadAmongMany(t, &concurrency{Store: memory.NewPolled(), slow: 2 * time.Second}, 0)
		for range 60 {
			time.Sleep(lease / 30)
			if left := term.Remaining(); left < lease/2 {
				t.Fatalf("%v are left of the lease: its renewal waits", left)
			}
		}
		end()
	})
}

// After a failed renewal the leader reads. This read has priority, too.
func TestGroupReadsForLeadersFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const slow = 2 * time.Second
		writes := &failing{Store: memory.NewPolled()}
		term, end := leadAmongMany(t, &concurrency{Store: writes, slow: slow}, lease/3-time.Second)
		noAnswer := errors.New("no answer")
		writes.err.Store(&noAnswer)
		time.Sleep(slow + time.Millisecond) // the renewal waits for the first of the other reads
		writes.err.Store(nil)
		time.Sleep(lease / 3)
		if left := term.Remaining(); left < lease/2 {
			t.Errorf("%v are left of the lease: the read waits", left)
		}
		end()
	})
}

// Claims do not wait behind the reads of other elections either, which could make them too late.
func TestGroupClaimsBeforeItReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const many = 1000
		store := &concurrency{Store: memory.NewPolled(), slow: 2 * time.Second}
		ctx, stop := context.WithCancel(t.Context())
		work := &termCounter{}
		g := mustNewGroup(t, store, "a", nil)
		ends := g.joinAll(ctx, g.elections(many), work)
		time.Sleep(3 * time.Second)
		if n := work.led.Load(); n < 200 {
			t.Errorf("%d elections led when 256 had been read", n)
		}
		stop()
		for _, done := range ends {
			<-done
		}
	})
}

// hanging hangs until the context of the call ends.
type hanging struct {
	driver.Store
	hangs atomic.Bool
}

func (s *hanging) Read(ctx context.Context, key string) (driver.Entry, error) {
	if s.hangs.Load() {
		<-ctx.Done()
		return driver.Entry{}, ctx.Err()
	}
	return s.Store.Read(ctx, key)
}

func (s *hanging) CompareAndSwap(ctx context.Context, key string, prev driver.Version, value []byte) (driver.Version, error) {
	if s.hangs.Load() {
		<-ctx.Done()
		return "", ctx.Err()
	}
	return s.Store.CompareAndSwap(ctx, key, prev, value)
}

// A store that hangs for almost the longest time of a call costs no term, not even for elections
// that wait for each other.
func TestGroupKeepsItsTermsWhileTheStoreHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const many = 600
		store := &hanging{Store: memory.NewPolled()}
		ctx, stop := context.WithCancel(t.Context())
		var lost atomic.Int64
		g := mustNewGroup(t, store, "a", func(c *tenure.Config) {
			c.OnEvent = func(e tenure.Event) {
				if e.Kind == tenure.EventLost {
					lost.Add(1)
				}
			}
		})
		ends := g.joinAll(ctx, g.elections(many), &termCounter{})
		time.Sleep(2 * lease)
		store.hangs.Store(true)
		time.Sleep(lease / 4)
		store.hangs.Store(false)
		time.Sleep(2 * lease)
		if n := lost.Load(); n > 0 {
			t.Errorf("%d of %d terms were lost", n, many)
		}
		stop()
		for _, done := range ends {
			if err := within(t, time.Minute, done, "end"); err != nil {
				t.Errorf("it ended with %v", err)
			}
		}
	})
}

// Some elections with one context end before the context does. Others campaign again with it after
// it has ended.
func TestGroupElectionsEndWithTheirSharedContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memory.New()
		ctx, stop := context.WithCancel(t.Context())
		g := mustNewGroup(t, store, "a", nil)
		all := g.elections(20)
		var ends []<-chan error
		for i, e := range all {
			work := func(soft context.Context, _ *tenure.Term) error {
				if i%2 == 0 {
					return errors.New("by itself")
				}
				<-soft.Done()
				return context.Cause(soft)
			}
			ends = append(ends, g.join(context.WithValue(ctx, &all[i], i), e, tenure.Lead(work)))
		}
		time.Sleep(lease)
		for i, done := range ends {
			if ended := len(done) > 0; ended != (i%2 == 0) {
				t.Errorf("election %d has ended: %v", i, ended)
			}
		}
		stop()
		synctest.Wait()
		for i, done := range ends {
			if err := within(t, time.Minute, done, "end"); (err != nil) != (i%2 == 0) {
				t.Errorf("election %d ended with %v", i, err)
			}
			if err := all[i].Run(ctx, holdOn); err != nil {
				t.Errorf("with a context that had ended, Run returned %v", err)
			}
		}
	})
}

// Some leave while others campaign again with the same context, which has ended.
func TestGroupElectionsJoinWithAnEndedContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		all := mustNewGroup(t, memory.New(), "a", nil).elections(50)
		var group sync.WaitGroup
		for i, e := range all {
			group.Go(func() {
				for range 20 {
					if err := e.Run(ctx, holdOn); err != nil {
						t.Error(err)
					}
				}
			})
			if i == len(all)/2 {
				stop()
			}
		}
		group.Wait()
	})
}

// longContext is a context that counts the waits for its end.
type longContext struct {
	context.Context
	done  chan struct{}
	waits atomic.Int64
}

func (c *longContext) Done() <-chan struct{} { return c.done }

func (c *longContext) AfterFunc(func()) (stop func() bool) {
	c.waits.Add(1)
	return func() bool { c.waits.Add(-1); return true }
}

// In whatever order elections end, nothing of them waits for the end of a context that goes on.
func TestGroupElectionsThatEndForgetTheirContext(t *testing.T) {
	for name, order := range map[string][]int{
		"the first first": {0, 1, 2},
		"the last first":  {2, 1, 0},
		"the middle last": {0, 2, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx := &longContext{Context: context.Background(), done: make(chan struct{})}
				g := mustNewGroup(t, memory.New(), "a", nil)
				var ends []<-chan error
				var finish []chan struct{}
				for _, e := range g.elections(3) {
					work := make(chan struct{})
					finish = append(finish, work)
					ends = append(ends, g.join(ctx, e, tenure.Lead(func(context.Context, *tenure.Term) error {
						<-work
						return errors.New("by itself")
					})))
				}
				time.Sleep(lease)
				if n := ctx.waits.Load(); n != 1 {
					t.Errorf("%d waits for one context", n)
				}
				for _, i := range order {
					close(finish[i])
					<-ends[i]
				}
				if n := ctx.waits.Load(); n != 0 {
					t.Errorf("%d waits are left", n)
				}
			})
		})
	}
}
