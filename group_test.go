package tenure_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/faults"
	"github.com/tenure-go/tenure/driver/memory"
	"github.com/tenure-go/tenure/nomination"
)

func TestGroupReportsInvalidUse(t *testing.T) {
	play(t, func(s *scene) {
		g := s.group("a")
		alone := s.group("a", nomineeOnly)
		_, noStore := tenure.NewGroup(nil, tenure.Config{})
		_, noName := g.Election("")
		_, longName := g.Election(strings.Repeat("x", 513))
		_, noNominator := alone.Election("job")
		_, foreign := g.Join(s.Context(), s.group("b").new().Election, tenure.Lead(holdOn))
		for why, err := range map[string]error{
			"the store is nil":        noStore,
			"the name is empty":       noName,
			"longer than 512":         longName,
			"Nomination.Only is true": noNominator,
			"it is not of this group": foreign,
		} {
			if err == nil || !strings.Contains(err.Error(), why) {
				s.Errorf("error %v, which does not say %q", err, why)
			}
		}
	}, watched)
}

func TestElectionsOfAGroup(t *testing.T) {
	scenes{
		"an election is made once, until Leave": func(s *scene) {
			g := s.group("a")
			first, again := g.new(), g.new()
			g.Leave(first.Election)
			if later := g.new(); first.Election != again.Election || later.Election == first.Election {
				s.Errorf("the second call returned the same: %v; the call after Leave: %v", again.Election == first.Election, later.Election == first.Election)
			}
			_, err := g.Join(s.Context(), first.Election, tenure.Lead(holdOn))
			if err == nil {
				s.Error("Join took back an election beside another of its name")
			}
		},
		"each has a Nominator of its own, or none": func(s *scene) {
			var mine manualNominator
			g := s.group("a", func(c *tenure.Config) {
				c.Nomination = nomination.Config{Only: true, Nominator: func(election string) nomination.Nominator {
					if election == key {
						return &mine
					}
					return nil
				}}
			})
			a := g.new().start(holdOn)
			a.idles(5 * lease)
			mine.notify(true)
			a.leads(lease)
			if _, err := g.Election("another"); err == nil || !strings.Contains(err.Error(), "without a Nominator") {
				s.Errorf("an election that nobody can lead: %v", err)
			}
		},
		"Watch follows all elections in one goroutine": func(s *scene) {
			g := s.group("o")
			all := g.many(50)
			ctx, stop := context.WithCancel(s.Context())
			before := goroutines()
			seen := &sync.Map{}
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				for status, err := range g.Watch(ctx) {
					s.is("Watch", err, nil)
					seen.Store(status.Election, status.Leader.ID)
				}
			}()
			sees := func(p *process, want any) {
				s.Helper()
				synctest.Wait()
				if got, _ := seen.Load(p.Name()); got != want {
					s.Errorf("of %s it sees the leader %v, want %v", p.Name(), got, want)
				}
			}
			time.Sleep(time.Minute)
			least := math.MaxInt
			for range 60 { // in some of these seconds elections read
				time.Sleep(time.Second)
				synctest.Wait()
				least = min(least, goroutines())
			}
			if least > before+1 {
				s.Errorf("%d goroutines at least, %d before", least, before)
			}
			all = append(all, g.new("later"))
			leaders := s.group("a")
			for _, p := range []*process{all[0], all[30], all[50]} {
				sees(p, "")
				leaders.join(leaders.new(p.Name()), &termCounter{})
				time.Sleep(2 * lease)
				sees(p, "a")
			}
			g.Leave(all[30].Election)
			leaders.Leave(leaders.new(all[0].Name()).Election)
			leaders.Leave(leaders.new(all[30].Name()).Election)
			time.Sleep(2 * lease)
			sees(all[0], "")
			sees(all[30], "a") // it was left, so it is followed no longer
			stop()
			within(s.T, time.Minute, ended, "end of Watch")
			time.Sleep(time.Hour)
			for _, p := range all {
				if st := p.Status(); time.Since(st.LastContact) < time.Hour-time.Minute {
					s.Errorf("%s still reads after Watch has ended: %+v", p.Name(), st)
				}
			}
		},
		"Watch yields each change once after an election has left and come back": func(s *scene) {
			g := s.group("o")
			e, other := g.new().Election, g.new("other").Election
			statuses := make(chan tenure.Status)
			go func() {
				for status := range g.Watch(s.Context()) {
					statuses <- status
				}
			}()
			all := func() (seen []tenure.Status) {
				for {
					select {
					case now := <-statuses:
						seen = append(seen, now)
					case <-time.After(3 * lease):
						return seen
					}
				}
			}
			all()
			other.SetEligible(false)
			synctest.Wait() // now the loop is slow
			e.SetEligible(false)
			g.Leave(e)
			_, err := g.Join(s.Context(), e, &termCounter{})
			s.is("Join", err, nil)
			all()
			e.SetEligible(true)
			last := tenure.Status{}
			for _, now := range all() {
				if now.State == last.State && now.Eligible == last.Eligible && now.Leader.Equal(last.Leader) {
					s.Errorf("%s twice, eligible: %v", now.State, now.Eligible)
				}
				last = now
			}
		},
		"Watch ends with its context, however many elections have changed": func(s *scene) {
			g := s.group("o")
			g.many(100)
			ctx, stop := context.WithCancel(s.Context())
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				for range g.Watch(ctx) {
					time.Sleep(time.Second)
				}
			}()
			time.Sleep(3 * time.Second)
			stop()
			within(s.T, 2*time.Second, ended, "end of Watch")
		},
		"an error of one election ends no Watch": func(s *scene) {
			f, far := s.faulty()
			f.Next(faults.Read, faults.Deny)
			g := far.group("o")
			g.many(2)
			denied, seen := 0, map[string]bool{}
			ctx, stop := context.WithTimeout(s.Context(), 5*lease)
			defer stop()
			for status, err := range g.Watch(ctx) {
				if seen[status.Election] = true; err != nil {
					s.is("Watch", err, driver.ErrDenied)
					s.is("Status", status.Err, driver.ErrDenied)
					denied++
				}
			}
			if denied != 1 || len(seen) != 2 {
				s.Errorf("statuses of %v, and %d errors", seen, denied)
			}
		},
	}.play(t)
}

// TestManyElectionsAreSmall checks the memory of one election among many in a process, at the mean
// of a follower and a leader: at most 2.5 KB of heap in a bubble, which itself uses 400 bytes of
// it, and no goroutine. A leader has renewed once by then. The test subtracts the memory of the
// store in this process. Its maps grow by chance while one or the other is measured, so only the
// mean is sure. No call is in progress during the measurement.
func TestManyElectionsAreSmall(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes seconds")
	}
	play(t, manyElectionsAreSmall, watched)
}

func manyElectionsAreSmall(s *scene) {
	const many = 3000
	names := make([]string, many)
	for i := range names {
		names[i] = fmt.Sprintf("%s-%04d", key, i)
	}
	spare := memory.New()
	ctx, stop := context.WithCancel(s.Context())
	defer stop()
	crowd(2 * many)
	var ends []<-chan error
	all := 0
	for _, id := range []string{"leader", "follower"} {
		before := heap()
		for _, name := range names {
			spare.Put(name, make([]byte, 200)) // the size of a record
			_, err := spare.Watch(ctx, name, func(driver.Entry) {})
			s.is("Watch", err, nil)
			_, err = spare.Announce(ctx, name, func() []byte { return nil })
			s.is("Announce", err, nil)
		}
		part := heap() - before
		before, goroutines := heap(), runtime.NumGoroutine()
		ends = append(ends, startAll(ctx, s, id, names)...)
		synctest.Wait()
		all += heap() - before - part
		if n := runtime.NumGoroutine() - goroutines; n > 0 {
			s.Errorf("%s: %d goroutines", id, n)
		}
	}
	if each := all / (2 * many); each > 2500 || each < 1000 { // the bubble uses 400 of them
		s.Errorf("%d bytes each", each)
	}
	runtime.KeepAlive(spare)
	stop()
	for _, end := range ends {
		<-end
	}
}

// startAll starts elections with these names and returns when each has a leader. Leads, too, need
// no goroutine while they follow.
func startAll(ctx context.Context, s *scene, id string, names []string) (ends []<-chan error) {
	s.Helper()
	g := s.group(id, leaseOf(driver.MaxLease), withClock(nil))
	work := map[string]tenure.Handler{"leader": &termCounter{}, "follower": tenure.Lead(holdOn)}[id]
	all := make([]*tenure.Election, 0, len(names))
	for _, name := range names {
		e, err := g.Election(name)
		s.is("Election", err, nil)
		end, err := g.Join(ctx, e, work)
		s.is("Join", err, nil)
		all, ends = append(all, e), append(ends, end)
	}
	for _, e := range all {
		_, err := e.Wait(ctx, func(s tenure.Status) bool { return s.Leader.Exists() })
		s.is("Wait", err, nil)
	}
	return ends
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

// heap returns the heap in use after a collection. A second collection frees the objects that
// finalizers released in the first.
func heap() int {
	runtime.GC()
	runtime.GC()
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	return int(s.HeapAlloc)
}

// slowReads returns a link whose reads take some time, and a function that returns the largest
// number of concurrent ones.
func slowReads(link driver.Store, slow time.Duration) (*hooked, func() int64) {
	var now, most atomic.Int64
	before := func(ctx context.Context, op faults.Op, _ string, _ []byte) error {
		if op != faults.Read {
			return nil
		}
		most.Store(max(most.Load(), now.Add(1)))
		defer now.Add(-1)
		select {
		case <-time.After(slow):
		case <-ctx.Done():
		}
		return nil
	}
	return &hooked{Store: link, before: before}, most.Load
}

// leadAmongMany starts a leader and, after a pause, so many elections of its group that reading for
// all of them takes longer than the lease.
func (s *scene) leadAmongMany(pause time.Duration) (term *tenure.Term) {
	s.Helper()
	g := s.group("a")
	all := g.many(3_000)
	term = all[0].start(holdOn).leads()
	time.Sleep(pause)
	s.Cleanup(g.joinAll(all[1:], tenure.Lead(holdOn)))
	return term
}

func TestGroups(t *testing.T) {
	scenes{
		"elections share settings until they are reconfigured": func(s *scene) {
			var events atomic.Int64
			g := s.group("a", func(c *tenure.Config) {
				c.Metadata, c.OnEvent = map[string]string{"zone": "1"}, func(tenure.Event) { events.Add(1) }
			})
			first, second := g.new(), g.new("other")
			first.reconfigure(leaseOf(time.Minute))
			if c := second.config(); second.Name() != "other" || second.ID() != "a" || c.Lease != lease || c.Metadata["zone"] != "1" {
				s.Errorf("the other is %s of %s, with %+v", second.Name(), second.ID(), c)
			}
			first.start(holdOn).leads()
			second.start(holdOn).leads()
			one, other := first.Status(), second.Status()
			if one.Leader.Incarnation == other.Leader.Incarnation || one.Record.Lease == other.Record.Lease {
				s.Errorf("two elections hold the records %+v and %+v", one.Record, other.Record)
			}
			_, _ = first.end(), second.end()
			if events.Load() == 0 {
				s.Error("no election had an event")
			}
		},
		"concurrent calls of the store are limited": func(s *scene) {
			const many = 1000
			slow, most := slowReads(s.store, 10*time.Millisecond)
			var work termCounter
			g := s.over(slow).group("a")
			end := g.joinAll(g.many(many), &work)
			time.Sleep(lease)
			if most() > 256 || most() < 100 || work.led.Load() != many {
				s.Errorf("%d calls at once, and %d of %d elections led", most(), work.led.Load(), many)
			}
			end()
		},
		// Leaders are renewed in time while many other elections start: their calls have priority.
		"leaders call the store first": func(s *scene) {
			slow, _ := slowReads(s.store, 2*time.Second)
			term := s.over(slow).leadAmongMany(0)
			for range 60 {
				time.Sleep(lease / 30)
				if left := term.Remaining(); left < lease/2 {
					s.Fatalf("%v are left of the lease: its renewal waits", left)
				}
			}
		},
		// After a failed renewal the leader reads. This read has priority, too: it begins as soon
		// as calls that are under way end, long before the reads that wait.
		"leaders read first": func(s *scene) {
			const slow = 2 * time.Second
			type call struct {
				op faults.Op
				at time.Time
			}
			calls := make(chan call, 100) // those of the leader that fail
			var fail atomic.Bool
			link, _ := slowReads(s.store, slow)
			reads := link.before
			link.before = func(ctx context.Context, op faults.Op, k string, value []byte) error {
				if k == key && fail.Load() {
					calls <- call{op, time.Now()}
					return errors.New("no answer")
				}
				return reads(ctx, op, k, value)
			}
			s.over(link).leadAmongMany(lease/3 - time.Second)
			fail.Store(true)
			write, read := <-calls, <-calls
			fail.Store(false)
			if waited := read.at.Sub(write.at); write.op != faults.Write || read.op != faults.Read || waited > slow {
				s.Errorf("after %v, %v waits for %v", write.op, read.op, waited)
			}
		},
		// Claims do not wait behind the reads of other elections either, which could make them
		// late.
		"claims come before reads": func(s *scene) {
			slow, _ := slowReads(s.store, 2*time.Second)
			var work termCounter
			g := s.over(slow).group("a")
			end := g.joinAll(g.many(1000), &work)
			time.Sleep(3 * time.Second)
			if n := work.led.Load(); n < 200 {
				s.Errorf("%d elections led when 256 had been read", n)
			}
			end()
		},
		// For almost the longest time of a call, also for elections that wait for each other.
		"a store that hangs costs no term": func(s *scene) {
			const many = 600
			f, far := s.faulty()
			var lost atomic.Int64
			g := far.group("a", onEvent(func(e tenure.Event) {
				if e.Kind == tenure.EventLost {
					lost.Add(1)
				}
			}))
			end := g.joinAll(g.many(many), &termCounter{})
			time.Sleep(2 * lease)
			f.Partition()
			time.Sleep(lease / 4)
			f.Heal()
			time.Sleep(2 * lease)
			if n := lost.Load(); n > 0 {
				s.Errorf("%d of %d terms were lost", n, many)
			}
			end()
		},
		// Some elections with one context end before the context does. Others campaign again with
		// it after it has ended.
		"elections end with their shared context": func(s *scene) {
			ctx, stop := context.WithCancel(s.Context())
			g := s.group("a")
			all := g.many(20)
			for i, p := range all {
				work := holdOn
				if i%2 == 0 {
					work = returns(errBroken)
				}
				g.joinIn(context.WithValue(ctx, &all[i], i), p, tenure.Lead(work))
			}
			time.Sleep(lease)
			for i, p := range all {
				if ended := len(p.done) > 0; ended != (i%2 == 0) {
					s.Errorf("election %d has ended: %v", i, ended)
				}
			}
			stop()
			synctest.Wait()
			for i, p := range all {
				if err := p.result(); (err != nil) != (i%2 == 0) {
					s.Errorf("election %d ended with %v", i, err)
				}
				s.is("Run with a context that had ended", p.Run(ctx, holdOn), nil)
			}
		},
		// Some leave while others campaign again with the same context, which has ended.
		"elections join with an ended context": func(s *scene) {
			ctx, stop := context.WithCancel(s.Context())
			defer stop()
			all := s.group("a").many(50)
			var group sync.WaitGroup
			for i, e := range all {
				group.Go(func() {
					for range 20 {
						s.is("Run", e.Run(ctx, holdOn), nil)
					}
				})
				if i == len(all)/2 {
					stop()
				}
			}
			group.Wait()
		},
	}.play(t, polled)
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
	for _, order := range [][]int{{0, 1, 2}, {2, 1, 0}, {0, 2, 1}} {
		play(t, func(s *scene) {
			ctx := &longContext{Context: context.Background(), done: make(chan struct{})}
			g := s.group("a")
			all := g.many(3)
			var finish [3]chan struct{}
			for i, p := range all {
				finish[i] = make(chan struct{})
				g.joinIn(ctx, p, tenure.Lead(func(context.Context, *tenure.Term) error {
					<-finish[i]
					return errBroken
				}))
			}
			time.Sleep(lease)
			if n := ctx.waits.Load(); n != 1 {
				s.Errorf("%d waits for one context", n)
			}
			for _, i := range order {
				close(finish[i])
				_ = all[i].result()
			}
			if n := ctx.waits.Load(); n != 0 {
				s.Errorf("ended in the order %v: %d waits are left", order, n)
			}
		}, watched)
	}
}
