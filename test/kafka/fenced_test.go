package kafka

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/kafkalog/fenced"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// fencedScenes are the tests for every cluster, each in its own topic.
func fencedScenes() map[string]func(*testing.T, scene) {
	return map[string]func(*testing.T, scene){
		"Writes":              fencedWrites,
		"LateProduce":         fencedLateProduce,
		"LateCommit":          fencedLateCommit,
		"CommitBeforeOpen":    fencedCommitBeforeOpen,
		"LateInit":            fencedLateInit,
		"LateInitInTheMidst":  fencedLateInitInTheMidst,
		"PausedInOpen":        fencedPausedInOpen,
		"PausedBeforeCommit":  fencedPausedBeforeCommit,
		"Rivals":              fencedRivals,
		"UnknownCommit":       fencedUnknownCommit,
		"RefusedAfterApplied": fencedRefusedAfterApplied,
		"AllOrNone":           fencedAllOrNone,
		"TooLate":             fencedTooLate,
		"Close":               fencedClose,
	}
}

func TestFenced(t *testing.T) {
	for name, run := range fencedScenes() {
		t.Run(name, func(t *testing.T) {
			sceneInBubble(t, func(t *testing.T, b scene) {
				b.makeTopic(1)
				run(t, b)
			})
		})
	}
}

func fencedWrites(_ *testing.T, b scene) {
	leader := b.elect("a")
	p := leader.open()
	// More than once if a coordinator is not ready yet.
	opened := leader.sent[kmsg.InitProducerID].Load()
	mine := records("one", "two")
	mine[0].Headers = []kgo.RecordHeader{{Key: "x"}, {Key: fenced.Header, Value: []byte("7")}}
	if err := p.Produce(within(b), mine...); err != nil {
		b.Fatal(err)
	}
	if len(mine[0].Headers) != 2 || len(mine[1].Headers) != 0 {
		b.Error("the caller's records have changed")
	}
	for range 3 {
		b.produce(p, "more")
	}
	b.produce(p)
	b.expect("1:one", "1:two", "1:more", "1:more", "1:more")
	if n := leader.sent[kmsg.InitProducerID].Load() - opened; n != 0 {
		b.Errorf("%d epochs more were asked for", n)
	}
}

// fencedLateProduce: the old leader checked its lease and was paused before it wrote. The brokers
// refuse the late write.
func fencedLateProduce(_ *testing.T, b scene) {
	old := b.elect("old")
	late := old.open()
	b.produce(late, "early")
	old.hold(kmsg.Produce)
	done := aside(func() error { return late.Produce(within(b), records("late")...) })
	letter := old.caught()
	next := old.depose("next")
	p := next.open()
	b.lost(b.outcomeOf(done))
	_ = late.Close()
	letter.deliver()
	b.produce(p, "mine")
	if all := b.read(0, kgo.ReadUncommitted()); slices.Contains(all, old.wrote("late")) {
		b.Errorf("a late write is in the log, which holds %q", all)
	}
	b.expect(old.wrote("early"), next.wrote("mine"))
}

// fencedLateCommit is the same with the commit. Opening the next producer has aborted the
// transaction that it would have committed.
func fencedLateCommit(_ *testing.T, b scene) {
	old := b.elect("old")
	late := old.open()
	b.produce(late, "early")
	old.hold(kmsg.EndTxn)
	done := aside(func() error { return late.Produce(within(b), records("late")...) })
	letter := old.caught()
	next := old.depose("next")
	p := next.open()
	b.expect(old.wrote("early"))
	err := b.outcomeOf(done)
	b.lost(err)
	if !errors.Is(err, fenced.ErrUnknown) {
		b.Errorf("a commit that is on its way: %v", err)
	}
	_ = late.Close()
	letter.deliver()
	b.produce(p, "mine")
	b.expect(old.wrote("early"), next.wrote("mine"))
}

// fencedCommitBeforeOpen: a commit may arrive after its leader was deposed, but not after the next
// producer was opened.
func fencedCommitBeforeOpen(_ *testing.T, b scene) {
	old := b.elect("old")
	late := old.open()
	old.hold(kmsg.EndTxn)
	done := aside(func() error { return late.Produce(within(b), records("late")...) })
	letter := old.caught()
	next := old.depose("next")
	b.lost(b.outcomeOf(done))
	_ = late.Close()
	letter.deliver()
	p := next.open()
	b.expect(old.wrote("late"))
	b.produce(p, "mine")
	b.expect(old.wrote("late"), next.wrote("mine"))
}

// fencedLateInit: a deposed leader's request for an epoch arrives after the next leader's. The next
// leader gets another epoch.
func fencedLateInit(_ *testing.T, b scene) {
	old := b.elect("old")
	old.hold(kmsg.InitProducerID)
	done := aside(func() error {
		_, err := fenced.Open(within(b), old.Term, old.options())
		return err
	})
	letter := old.caught()
	next := old.depose("next")
	p := next.open()
	b.produce(p, "one")
	b.lost(b.outcomeOf(done))
	next.decided()
	letter.abandoned()
	letter.deliver()
	b.produce(p, "two")
	b.produce(p, "three")
	b.expect(next.wrote("one"), next.wrote("two"), next.wrote("three"))
	if n := next.sent[kmsg.InitProducerID].Load(); n < 2 {
		b.Error("the old leader's request has not fenced the new one: this test proves nothing")
	}
}

// fencedLateInitInTheMidst is the same after the next leader has written but not committed.
func fencedLateInitInTheMidst(_ *testing.T, b scene) {
	old := b.elect("old")
	old.hold(kmsg.InitProducerID)
	done := aside(func() error {
		_, err := fenced.Open(within(b), old.Term, old.options())
		return err
	})
	letter := old.caught()
	next := old.depose("next")
	p := next.open()
	b.lost(b.outcomeOf(done))
	next.hold(kmsg.EndTxn)
	done = aside(func() error { return p.Produce(within(b), records("one", "two")...) })
	commit := next.caught()
	letter.deliver()
	b.settle()
	commit.deliver()
	err := b.outcomeOf(done)
	// The brokers were still aborting, so the client sent the commit twice.
	if errors.Is(err, fenced.ErrUnknown) {
		b.expect()
		err = p.Produce(within(b), records("one", "two")...)
	}
	if err != nil {
		b.Error(err)
	}
	b.expect(next.wrote("one"), next.wrote("two"))
}

// fencedPausedInOpen: when the answer arrives, the lease of the process has ended, although no
// timer has rung yet.
func fencedPausedInOpen(_ *testing.T, b scene) {
	old := b.elect("old")
	old.hold(kmsg.InitProducerID)
	done := aside(func() error {
		_, err := fenced.Open(within(b), old.Term, old.options())
		return err
	})
	letter := old.caught()
	old.Pause()
	letter.deliver()
	b.lost(b.outcomeOf(done))
}

// fencedPausedBeforeCommit is the same between the last record and the commit, which is not sent.
func fencedPausedBeforeCommit(_ *testing.T, b scene) {
	old := b.elect("old")
	p := old.open()
	old.hold(kmsg.Produce)
	done := aside(func() error { return p.Produce(within(b), records("late")...) })
	letter := old.caught()
	old.Pause()
	letter.deliver()
	err := b.outcomeOf(done)
	b.lost(err)
	if errors.Is(err, fenced.ErrUnknown) {
		b.Errorf("nothing was committed, but the error is %v", err)
	}
	b.expect()
}

// fencedRivals: two leaders of different elections use one ID. Each stops after some attempts, and
// returns the reason.
func fencedRivals(_ *testing.T, b scene) {
	one, two := b.elect("one"), b.elect("two")
	id := fenced.WithID(fresh("shared"))
	first, second := one.open(id), two.open(id)
	var refused error
	for range 10 {
		b.produce(second, "ok")
		if refused = first.Produce(within(b), records("ok")...); refused != nil {
			break
		}
	}
	if !errors.Is(refused, fenced.ErrFenced) || errors.Is(refused, tenure.ErrLost) || errors.Is(refused, fenced.ErrUnknown) {
		b.Errorf("the first one gets the error %v", refused)
	}
	before := one.sent[kmsg.InitProducerID].Load()
	if err := first.Produce(within(b), records("x")...); !errors.Is(err, fenced.ErrFenced) || before < 4 ||
		one.sent[kmsg.InitProducerID].Load() != before {
		b.Errorf("after %d requests it asks again, with the error %v", before, err)
	}
	b.produce(second, "ok")
	b.expect(slices.Repeat([]string{"1:ok"}, 8)...)
}

// fencedUnknownCommit: the caller does not wait for the answer to a commit. The next call decides
// the transaction.
func fencedUnknownCommit(t *testing.T, b scene) {
	leader := b.elect("a")
	p := leader.open()
	for _, arrives := range []bool{true, false} {
		ctx, cancel := context.WithCancelCause(t.Context())
		leader.hold(kmsg.EndTxn)
		done := aside(func() error { return p.Produce(ctx, records(fmt.Sprint(arrives))...) })
		letter := leader.caught()
		bored := errors.New("bored")
		cancel(bored)
		if err := b.outcomeOf(done); !errors.Is(err, fenced.ErrUnknown) || !errors.Is(err, bored) {
			b.Errorf("a call without an answer returns %v", err)
		}
		letter.abandoned()
		if arrives {
			letter.deliver()
		}
		b.produce(p, "next")
		if !arrives {
			letter.deliver()
		}
	}
	b.produce(p, "last")
	b.expect("1:true", "1:next", "1:next", "1:last")
}

// fencedRefusedAfterApplied: a commit is applied and its answer is lost. Another producer is
// opened, and the client's second delivery is refused. That is no proof that nothing was committed.
func fencedRefusedAfterApplied(_ *testing.T, b scene) {
	one, two := b.elect("one"), b.elect("two")
	id := fenced.WithID(fresh("shared"))
	p := one.open(id)
	one.hold(kmsg.EndTxn)
	done := aside(func() error { return p.Produce(within(b), records("once")...) })
	first := one.caught()
	one.hold(kmsg.EndTxn)
	// As when the network breaks, while requests in flight still arrive.
	_ = first.conn.Close()
	first.deliver()
	second := one.caught()
	other := two.open(id)
	b.expect("1:once")
	second.deliver()
	if err := b.outcomeOf(done); !errors.Is(err, fenced.ErrUnknown) {
		b.Errorf("the error is %v", err)
	}
	b.produce(other, "next")
	b.expect("1:once", "1:next")
}

// fencedAllOrNone: if a record cannot be written, none of the call is, and the next call works.
func fencedAllOrNone(_ *testing.T, b scene) {
	p := b.elect("a").open()
	bad := records("good", strings.Repeat("x", 2<<20))
	err := p.Produce(within(b), bad...)
	if !errors.Is(err, kerr.MessageTooLarge) || errors.Is(err, fenced.ErrUnknown) || errors.Is(err, fenced.ErrFenced) {
		b.Errorf("a record that is too large: %v", err)
	}
	b.expect()
	missing := records("good", "lost")
	missing[1].Topic = fresh("missing")
	if err := p.Produce(within(b), missing...); !errors.Is(err, kerr.UnknownTopicOrPartition) {
		b.Errorf("a topic that does not exist: %v", err)
	}
	b.expect()
	b.produce(p, "after")
	b.expect("1:after")
}

func fencedTooLate(_ *testing.T, b scene) {
	leader := b.elect("a")
	_, err := fenced.Open(within(b), leader.Term, leader.options(), fenced.WithNeed(time.Hour))
	if !errors.Is(err, tenure.ErrTooLate) || leader.sent[kmsg.InitProducerID].Load() != 0 {
		b.Errorf("with less left than is needed: %v", err)
	}
	p := leader.open()
	if err := leader.Term.Resign(within(b)); err != nil {
		b.Fatal(err)
	}
	b.lost(p.Produce(within(b), records("x")...))
	_, err = fenced.Open(within(b), leader.Term, leader.options())
	b.lost(err)
	b.expect()
}

// fencedClose: Close ends a call, aborts its transaction, and does not disturb later calls.
func fencedClose(_ *testing.T, b scene) {
	leader := b.elect("a")
	p := leader.open()
	b.produce(p, "one")
	leader.hold(kmsg.Produce)
	done := aside(func() error { return p.Produce(within(b), records("two")...) })
	letter := leader.caught()
	closed := aside(p.Close)
	if err := b.outcomeOf(done); !errors.Is(err, fenced.ErrClosed) {
		b.Errorf("a call ends with %v", err)
	}
	if err := b.outcomeOf(closed); err != nil {
		b.Error(err)
	}
	letter.deliver()
	if err := p.Produce(within(b), records("x")...); !errors.Is(err, fenced.ErrClosed) {
		b.Errorf("a closed producer writes: %v", err)
	}
	_ = p.Close()
	again := leader.open()
	b.produce(again, "three")
	b.expect("1:one", "1:three")
}

// TestFencedRights: a missing right is named at once, and the list in the package comment is
// enough.
func TestFencedRights(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, c *cluster) {
		fencedRights(t, c.scene("written"), as)
	}, kfake.EnableSASL(), kfake.EnableACLs(), kfake.Superuser(plainSASL, "admin", "admin"),
		kfake.SeedTopics(1, "written"),
		kfake.User(plainSASL, "nobody", "nobody"), kfake.User(plainSASL, "half", "half", mayCommit()),
		kfake.User(plainSASL, "leader", "leader", mayCommit(), mayWrite()))
}

func mayCommit() kfake.ACL {
	return kfake.ACL{Resource: kmsg.ACLResourceTypeTransactionalId, Name: "billing", Pattern: kmsg.ACLResourcePatternTypeLiteral,
		Operation: kmsg.ACLOperationWrite, Allow: true}
}

func mayWrite() kfake.ACL {
	return kfake.ACL{Resource: kmsg.ACLResourceTypeTopic, Name: "written", Pattern: kmsg.ACLResourcePatternTypeLiteral,
		Operation: kmsg.ACLOperationWrite, Allow: true}
}

// fencedRights needs three users: nobody without rights, half with a right to the transactional ID
// only, and leader.
func fencedRights(t *testing.T, b scene, login func(string) kgo.Opt) {
	term := b.contest("billing").elect("a").Term
	for user, missing := range map[string]string{
		"nobody": "Write on the transactional id", "half": "Write on the topic", "leader": "",
	} {
		prompt(t, 5*time.Second, func() {
			p, err := fenced.Open(within(t), term, b.direct(login(user), kgo.DefaultProduceTopic(b.topic)))
			if err == nil {
				err = p.Produce(within(t), kgo.StringRecord("x"))
				_ = p.Close()
			}
			switch {
			case missing == "" && err != nil:
				t.Errorf("%s: %v", user, err)
			case missing != "" && (!errors.Is(err, driver.ErrDenied) || !strings.Contains(err.Error(), missing)):
				t.Errorf("%s: %v", user, err)
			}
		})
	}
}

func TestFencedOptions(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, c *cluster) {
		term := c.scene("").elect("a").Term
		for says, open := range map[string]func() (*fenced.Producer, error){
			"transactional id is empty": func() (*fenced.Producer, error) { return fenced.Open(within(t), term, c.direct(), fenced.WithID("")) },
			"the need is -1ns":          func() (*fenced.Producer, error) { return fenced.Open(within(t), term, c.direct(), fenced.WithNeed(-1)) },
			"kgo.TransactionalID: this package": func() (*fenced.Producer, error) {
				return fenced.Open(within(t), term, c.direct(kgo.TransactionalID("x")))
			},
			"leave out kgo.ConsumerGroup": func() (*fenced.Producer, error) {
				return fenced.Open(within(t), term, c.direct(kgo.ConsumerGroup("x"), kgo.ConsumeTopics("x")))
			},
		} {
			if _, err := open(); err == nil || !strings.Contains(err.Error(), says) {
				t.Errorf("%v does not say %s", err, says)
			}
		}
	})
}

// TestFencedLeaderStopsRequestingAnEpoch: the coordinator answers each request for an epoch that
// the leader is fenced. The leader requests it three more times, and then stops, although it still
// leads.
func TestFencedLeaderStopsRequestingAnEpoch(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, c *cluster) {
		b := c.scene("written")
		b.makeTopic(1)
		p := b.elect("a").open()
		c.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Err: kerr.MessageTooLarge, Count: 1})
		if err := p.Produce(within(t), kgo.StringRecord("x")); !errors.Is(err, kerr.MessageTooLarge) {
			t.Fatal(err)
		}
		asked := c.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.InitProducerID}, TopLevel: true, Err: kerr.ProducerFenced, Count: -1})
		err := p.Produce(within(t), kgo.StringRecord("x"))
		if !errors.Is(err, fenced.ErrFenced) || asked.Hits() > 20 {
			t.Errorf("after %d requests: %v", asked.Hits(), err)
		}
	})
}
