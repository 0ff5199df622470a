package kafka

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/clock"
	"github.com/tenure-go/tenure/driver/kafkalog"
	"github.com/tenure-go/tenure/driver/kafkalog/group"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// spell is one term of work, as the worker sees it.
type spell struct {
	runner     *runner
	term       uint64
	began, end time.Time // end is zero while it works
	why        error     // the cause of the end of the work's context
}

// ledger holds the times of work.
type ledger struct {
	mu  sync.Mutex
	all []spell
}

func (l *ledger) work(r *runner) func(context.Context, *tenure.Term) error {
	return func(ctx context.Context, t *tenure.Term) error {
		l.mu.Lock()
		i := len(l.all)
		l.all = append(l.all, spell{runner: r, term: t.Token(), began: time.Now()})
		l.mu.Unlock()
		<-ctx.Done()
		l.mu.Lock()
		defer l.mu.Unlock()
		l.all[i].end, l.all[i].why = time.Now(), context.Cause(ctx)
		r.once.Do(func() { close(r.finished) })
		return nil
	}
}

func (l *ledger) spells() []spell {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]spell{}, l.all...)
}

// last returns the latest term of work.
func (l *ledger) last() spell {
	all := l.spells()
	if len(all) == 0 {
		return spell{}
	}
	return all[len(all)-1]
}

// check fails if two candidates worked at once, or if terms did not grow.
func (l *ledger) check(t testing.TB) {
	t.Helper()
	all := l.spells()
	for i := 1; i < len(all); i++ {
		if before := all[i-1]; before.end.IsZero() || all[i].began.Before(before.end) || all[i].term <= before.term {
			t.Errorf("term %d began at %v, though term %d ended at %v", all[i].term, all[i].began, before.term, before.end)
		}
	}
}

// next waits until another candidate works, and returns the time since began.
func (l *ledger) next(t testing.TB, began time.Time, term uint64) time.Duration {
	t.Helper()
	eventually(t, "another leader", func() bool { return l.last().term > term })
	return l.last().began.Sub(began)
}

// runner is a candidate of an election with nominations by a group.
type runner struct {
	*candidate
	store *kafkalog.Store
	stop  context.CancelFunc

	once     sync.Once
	finished chan struct{} // closed when its work first ended
	done     chan struct{} // closed when it no longer takes part
}

// leave ends a leader gracefully, so that the next nominee replaces it.
func (l *ledger) leave(r *runner) {
	_ = r.Close()
	<-r.finished
	r.stop()
	<-r.done
}

// run starts a candidate.
func (l *ledger) run(t testing.TB, m *candidate, s *kafkalog.Store, cfg tenure.Config) *runner {
	t.Helper()
	r := &runner{candidate: m, store: s, finished: make(chan struct{}), done: make(chan struct{})}
	cfg.Nominator, cfg.Metadata = m, group.Metadata(m.Name())
	e, err := tenure.New(s, "billing", cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	r.stop = cancel
	go func() {
		defer close(r.done)
		if err := e.Run(ctx, l.work(r)); err != nil {
			t.Error(err)
		}
	}()
	t.Cleanup(func() {
		cancel()
		<-r.done
	})
	return r
}

func (c *camp) run(l *ledger, cfg tenure.Config) *runner {
	c.tb.Helper()
	m := c.join()
	cfg.Clock = clock.Standard{}
	return l.run(c.tb, m, c.open(c.direct(kgo.Dialer(m.cord.Dial))), cfg)
}

// TestGroupElects: the nominee leads, joins change nothing, and a nominee that leaves hands over to
// the next one.
func TestGroupElects(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := encamp(t, 1)
		var l ledger
		all := []*runner{c.run(&l, tenure.Config{ID: "0"})}
		for _, id := range []string{"1", "2", "3"} {
			all = append(all, c.run(&l, tenure.Config{ID: id}))
		}
		l.next(t, time.Now(), 0)
		time.Sleep(5 * time.Minute)
		for range 3 {
			at := l.last()
			if !at.runner.Nominated() {
				t.Error("another candidate than the nominee leads")
			}
			all = append(all, c.run(&l, tenure.Config{ID: "late"}))
			time.Sleep(time.Minute)
			if l.last().term != at.term {
				t.Error("a join moved leadership")
			}
			began := time.Now()
			l.leave(at.runner)
			took := l.next(t, began, at.term)
			time.Sleep(time.Minute)
			t.Log("the next nominee leads after", took)
			if !l.last().runner.Nominated() || took > time.Second {
				t.Errorf("the next one leads after %v, and is the nominee: %v", took, l.last().runner.Nominated())
			}
			if ended := l.spells()[len(l.spells())-2]; !errors.Is(ended.why, tenure.ErrNominationLost) {
				t.Errorf("the work ended by %v", ended.why)
			}
		}
		l.check(t)
	})
}

// TestGroupStuck: while the coordinator answers no request there is no nominee. After Precedence
// one candidate is elected. When the group works again, that leader stays until the nominee asks
// for its place. With NomineeOnly no candidate is elected.
func TestGroupStuck(t *testing.T) {
	t.Parallel()
	for _, strict := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			c := encamp(t, 1)
			stuck := c.Fault(kfake.Fault{
				Keys: []kmsg.Key{kmsg.JoinGroup, kmsg.SyncGroup, kmsg.Heartbeat, kmsg.FindCoordinator}, Count: -1, TopLevel: true,
				Err: kerr.CoordinatorNotAvailable,
			})
			var l ledger
			began := time.Now()
			for _, id := range []string{"0", "1", "2"} {
				c.run(&l, tenure.Config{ID: id, Tuning: tenure.Tuning{Precedence: 20 * time.Second}, NomineeOnly: strict})
			}
			time.Sleep(2 * time.Minute)
			if strict != (len(l.spells()) == 0) {
				t.Errorf("nominees only: %v, and %d terms without one", strict, len(l.spells()))
			}
			if !strict {
				took := l.next(t, began, 0)
				t.Log("without a nominee a candidate leads after", took)
				if took < 20*time.Second || took > time.Minute {
					t.Errorf("after %v", took)
				}
			}
			stuck.Remove()
			time.Sleep(5 * time.Minute)
			if at := l.last(); at.runner == nil || !at.end.IsZero() || !at.runner.Nominated() {
				t.Error("the group works again, and its nominee does not lead")
			}
			l.check(t)
		})
	}
}

// TestGroupCoordinatorCut: only the leader cannot reach the coordinator, but it reaches the log.
// Its work is asked to finish before another candidate is nominated. That one is elected after the
// work has finished.
func TestGroupCoordinatorCut(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := encamp(t, 3)
		var l ledger
		for _, id := range []string{"0", "1", "2"} {
			c.run(&l, tenure.Config{ID: id})
		}
		l.next(t, time.Now(), 0)
		for range 10 {
			time.Sleep(time.Minute)
			at := l.last()
			coordinator := c.ListenAddrs()[c.CoordinatorFor(c.cfg.Name)]
			if err := c.MoveTopicPartition(topic, 0, (c.CoordinatorFor(c.cfg.Name)+1)%3); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Minute)
			if l.last().term != at.term {
				t.Fatal("a new leader of the partition moved leadership")
			}
			began := time.Now()
			at.runner.cord.Cut(func(address string) bool { return address == coordinator })
			took := l.next(t, began, at.term)
			ended := l.spells()[len(l.spells())-2]
			t.Log("the work ended after", ended.end.Sub(began), "by", ended.why, "and the next one leads after", took)
			if !errors.Is(ended.why, tenure.ErrNominationLost) || ended.end.Sub(began) > 15*time.Second || took > 20*time.Second {
				t.Error("too late")
			}
			at.runner.cord.Mend()
		}
		l.check(t)
	})
}

// TestGroupElectionRequests counts the requests of ten candidates in a minute, those for the log
// and those for the group.
func TestGroupElectionRequests(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := encamp(t, 1)
		var l ledger
		for id := range 10 {
			c.run(&l, tenure.Config{ID: fmt.Sprint(id)})
		}
		l.next(t, time.Now(), 0)
		time.Sleep(time.Minute)
		every := c.Fault(kfake.Fault{Observe: true, Count: -1})
		beats := c.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Heartbeat}, Observe: true, Count: -1})
		time.Sleep(10 * time.Minute)
		t.Logf("ten candidates, lease 15s: %d requests a minute, %d of them the group's", every.Hits()/10, beats.Hits()/10)
		if every.Hits() > 5000 {
			t.Errorf("ten candidates ask too much: %d in ten minutes", every.Hits())
		}
	})
}
