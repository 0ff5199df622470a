package kafka

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/compat/neli"
	"github.com/tenure-go/tenure/driver/kafkalog"
	"github.com/tenure-go/tenure/driver/kafkalog/group"
	"github.com/tenure-go/tenure/nomination"
	"github.com/tenure-go/tenure/test/internal/figures"
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
	cfg.Nomination.Nominator = nomination.By(m).Nominator
	cfg.Metadata = group.Metadata(m.Name())
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

// run starts a candidate. Its connection to the log is also over its relays.
func (s *site) run(l *ledger, cfg tenure.Config) *runner {
	s.tb.Helper()
	m := s.join()
	if cfg.ID == "" {
		cfg.ID = fresh("c")
	}
	return l.run(s.tb, m, s.open(s.through(m.ways)), cfg)
}

func TestGroupElects(t *testing.T) {
	inBubble(t, 1, func(_ *testing.T, c *cluster) { groupElects(&c.site, tenure.Config{}, 3) })
}

// groupElects: the nominee leads, joins change nothing, and a nominee that leaves hands over to the
// next one.
func groupElects(p *site, cfg tenure.Config, rounds int) {
	var l ledger
	for range 3 {
		p.run(&l, cfg)
	}
	l.next(p.tb, time.Now(), 0)
	pass(5 * time.Minute)
	var took figures.Dist
	for range rounds {
		p.members(3)
		at := l.last()
		p.run(&l, cfg)
		p.members(4)
		pass(time.Minute)
		if l.last().term != at.term || !at.runner.Nominated() {
			p.tb.Error("a join moved leadership, or another candidate than the nominee leads")
		}
		prompt(p.tb, time.Second, func() {
			began := time.Now()
			l.leave(at.runner)
			took = append(took, l.next(p.tb, began, at.term))
		})
		if ended := l.spells()[len(l.spells())-2]; !errors.Is(ended.why, nomination.ErrWithdrawn) {
			p.tb.Errorf("the work ended by %v", ended.why)
		}
	}
	l.check(p.tb)
	p.tb.Log("hand-over by a nominee that leaves", took)
}

// TestGroupStuck: while the coordinator answers no request there is no nominee. After Precedence
// one candidate is elected. When the group works again, that leader stays until the nominee asks
// for its place. With nomination.Config.Only no candidate is elected.
func TestGroupStuck(t *testing.T) {
	for _, strict := range []bool{false, true} {
		each(t, strict, func(t *testing.T, c *cluster) {
			stuck := c.Fault(kfake.Fault{
				Keys: []kmsg.Key{kmsg.JoinGroup, kmsg.SyncGroup, kmsg.Heartbeat, kmsg.FindCoordinator}, Count: -1, TopLevel: true,
				Err: kerr.CoordinatorNotAvailable,
			})
			var l ledger
			began := time.Now()
			for _, id := range []string{"0", "1", "2"} {
				c.run(&l, tenure.Config{ID: id, Nomination: nomination.Config{Precedence: 20 * time.Second, Only: strict}})
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

func TestGroupCoordinatorCut(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, c *cluster) {
		groupCoordinatorCut(&c.site, tenure.Config{}, 10, func() string {
			coordinator := c.CoordinatorFor(c.group.Name)
			if err := c.MoveTopicPartition(topic, 0, (coordinator+1)%3); err != nil {
				t.Fatal(err)
			}
			return c.ListenAddrs()[coordinator]
		})
	})
}

// groupCoordinatorCut: only the leader cannot reach the coordinator, but it reaches the log. Its
// work is asked to finish before another candidate is nominated. That one is elected after the work
// has finished. apart returns the coordinator, and makes another broker the leader of the log.
func groupCoordinatorCut(p *site, cfg tenure.Config, rounds int, apart func() (coordinator string)) {
	var l ledger
	for range 3 {
		p.run(&l, cfg)
	}
	l.next(p.tb, time.Now(), 0)
	var ends, took figures.Dist
	for range rounds {
		p.members(3)
		pass(time.Minute)
		at := l.last()
		coordinator := apart()
		pass(time.Minute)
		if virtual() && l.last().term != at.term {
			p.tb.Fatal("a new leader of the partition moved leadership")
		}
		at = l.last()
		began := time.Now()
		at.runner.ways[coordinator].Blackhole()
		next := l.next(p.tb, began, at.term)
		work := l.spells()[len(l.spells())-2]
		ended := work.end.Sub(began)
		if virtual() && (!errors.Is(work.why, nomination.ErrWithdrawn) || ended > 15*time.Second || next > 20*time.Second) {
			p.tb.Errorf("the work ended after %v by %v, and the next one leads after %v", ended, work.why, next)
		}
		ends, took = append(ends, ended), append(took, next)
		at.runner.ways.Heal()
		eventually(p.tb, "an ordinary member", func() bool { return at.runner.Err() == nil })
	}
	l.check(p.tb)
	p.tb.Log("the coordinator is cut off for the leader: its work ends", ends, "the next one leads", took)
}

// goneliJoins joins the group as a goNELI process does, and returns when the group has given it the
// partition: then it leads.
func (s *site) goneliJoins(more ...kgo.Opt) *kgo.Client {
	s.tb.Helper()
	more = append(more, kgo.ConsumerGroup(s.group.Name), kgo.ConsumeTopics(s.group.Name+".neli"), kgo.Balancers(kgo.RangeBalancer()))
	member := s.client(more...)
	eventually(s.tb, "goNELI is admitted", func() bool { _, generation := member.GroupMetadata(); return generation > 0 })
	return member
}

// TestNeliBesideGoNELI: the only member of this package is cut off for longer than its session. The
// group admits a goNELI process, which knows nothing of the log, and that process leads. The member
// that comes back does not lead beside it, with any Precedence.
func TestNeliBesideGoNELI(t *testing.T) {
	inBubble(t, 1, func(_ *testing.T, c *cluster) {
		ways := c.relays()
		a := c.begin("a", func(cfg *neli.Config) {
			cfg.Precedence, cfg.ClientOptions = neli.Duration(time.Second), c.through(ways)
		})
		a.mustLead()
		refuse(ways)
		old := c.goneliJoins(kgo.SessionTimeout(15 * time.Second))
		a.idle(10 * time.Millisecond)
		c.restore(ways)
		a.idle(5 * time.Minute)
		old.Close()
		a.mustLead()
		a.mustClose()
	})
}

// TestGroupBesideGoNELI is the same with a group as the Nominator. If the group may be of another
// kind, a candidate that is not nominated claims only as a confirmed member. Otherwise it need not
// wait.
func TestGroupBesideGoNELI(t *testing.T) {
	for _, beside := range []bool{false, true} {
		each(t, beside, func(t *testing.T, c *cluster) {
			c.group.BesideGoNELI = beside
			var l ledger
			first := c.run(&l, tenure.Config{ID: "0", Nomination: nomination.Config{Precedence: time.Second}})
			l.next(t, time.Now(), 0)
			first.ways.Blackhole()
			_ = c.goneliJoins(kgo.SessionTimeout(15 * time.Second))
			at := l.last()
			first.ways.Heal()
			time.Sleep(5 * time.Minute)
			if leads := l.last().term > at.term; leads == beside {
				t.Errorf("beside goNELI: %v, and it leads: %v", beside, leads)
			}
			if err := first.Err(); !errors.Is(err, kerr.InconsistentGroupProtocol) {
				t.Errorf("the group says %v", err)
			}
			l.check(t)
		})
	}
}

// TestGroupWithAnAbsentNominee: another member is nominated but does not come. A candidate that is
// a confirmed member leads after Precedence. A candidate that gets no answer from the coordinator
// may not. A leader that is not nominated finishes.
func TestGroupWithAnAbsentNominee(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, c *cluster) {
		c.group.BesideGoNELI = true
		idle := c.join() // it is nominated, but no candidate
		settled(t, []*candidate{idle})
		var l ledger
		began := time.Now()
		c.run(&l, tenure.Config{ID: "0", Nomination: nomination.Config{Precedence: 20 * time.Second}})
		if took := l.next(t, began, 0); took < 20*time.Second {
			t.Errorf("it leads %v before its turn", 20*time.Second-took)
		}
		time.Sleep(time.Minute)
		if l.last().term != 1 && len(l.spells()) != 1 {
			t.Errorf("%d terms", len(l.spells()))
		}
		gone := c.Fault(kfake.Fault{
			Keys:  []kmsg.Key{kmsg.JoinGroup, kmsg.SyncGroup, kmsg.Heartbeat, kmsg.FindCoordinator},
			Count: -1, TopLevel: true, Err: kerr.CoordinatorNotAvailable,
		})
		cut := time.Now()
		eventually(t, "it finishes", func() bool { return !l.last().end.IsZero() })
		if took := l.last().end.Sub(cut); took > 15*time.Second || !errors.Is(l.last().why, tenure.ErrIneligible) {
			t.Errorf("after %v it finishes by %v", took, l.last().why)
		}
		terms := len(l.spells())
		time.Sleep(5 * time.Minute)
		if len(l.spells()) != terms {
			t.Error("a candidate leads of which the coordinator does not say that it is a member")
		}
		gone.Remove()
		began = time.Now()
		eventually(t, "the coordinator is back", func() bool { return len(l.spells()) > terms })
		t.Log("leads again after", time.Since(began))
		l.check(t)
	})
}
