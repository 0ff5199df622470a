package kafka

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/compat/neli"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// goneliJoins joins a group as a goNELI process does, and returns when the group has given it the
// partition: then it leads.
func (c *cluster) goneliJoins(t testing.TB, name, topic string) *kgo.Client {
	t.Helper()
	member := c.client(kgo.ConsumerGroup(name), kgo.ConsumeTopics(topic), kgo.Balancers(kgo.RangeBalancer()), kgo.SessionTimeout(15*time.Second))
	eventually(t, "goNELI is admitted", func() bool { _, generation := member.GroupMetadata(); return generation > 0 })
	return member
}

// TestNeliBesideGoNELI: the only member of this package is cut off for longer than its session. The
// group admits a goNELI process, which knows nothing of the log, and that process leads. The member
// that comes back does not lead beside it, with any Precedence.
func TestNeliBesideGoNELI(t *testing.T) {
	inTheBubble(t, func(t *testing.T, c *cluster, begin beginning) {
		w := &wire{dial: c.dial}
		a := begin("a", func(cfg *neli.Config) {
			cfg.Precedence, cfg.ClientOptions = neli.Duration(time.Second), c.direct(kgo.Dialer(w.Dial))
		})
		a.mustLead(patience)
		w.Cut()
		old := c.goneliJoins(t, "group", "topic")
		a.idle(10 * time.Millisecond)
		w.Mend()
		a.idle(5 * time.Minute)
		old.Close()
		a.mustLead(patience)
		a.mustClose()
	})
}

// TestGroupBesideGoNELI is the same with a group as the Nominator. If the group may be of another
// kind, a candidate that is not nominated claims only as a confirmed member. Otherwise it need not
// wait.
func TestGroupBesideGoNELI(t *testing.T) {
	t.Parallel()
	for _, beside := range []bool{false, true} {
		inBubbleToo(t, func(t *testing.T, c *camp) {
			c.cfg.BesideGoNELI = beside
			var l ledger
			first := c.run(&l, tenure.Config{ID: "0", Tuning: tenure.Tuning{Precedence: time.Second}})
			l.next(t, time.Now(), 0)
			first.cord.Cut(anywhere)
			_ = c.goneliJoins(t, "billing", "billing.neli")
			at := l.last()
			first.cord.Mend()
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
	t.Parallel()
	inBubbleToo(t, func(t *testing.T, c *camp) {
		c.cfg.BesideGoNELI = true
		idle := c.join() // it is nominated, but no candidate
		settled(t, []*candidate{idle})
		var l ledger
		began := time.Now()
		c.run(&l, tenure.Config{ID: "0", Tuning: tenure.Tuning{Precedence: 20 * time.Second}})
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

// inBubbleToo is for several groups in one test.
func inBubbleToo(t *testing.T, test func(t *testing.T, c *camp)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(t, encamp(t, 1)) })
}
