//go:build integration

package kafka

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/tenure-go/tenure/driver/kafkalog/fenced"
	"github.com/tenure-go/tenure/internal/test/wait"
	"github.com/tenure-go/tenure/test/internal/kafkad/kafkad"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// realScene is on the brokers of all tests.
func realScene(t testing.TB) scene {
	t.Helper()
	return startReal(t).scene(fresh("written"))
}

// TestRealFenced is TestFenced on real brokers, whose behavior is decisive.
func TestRealFenced(t *testing.T) {
	c := kafkad.Shared(t)
	t.Run("Scenes", func(t *testing.T) {
		for name, run := range fencedScenes() {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				b := realScene(t)
				c.CreateTopic(t, b.topic, nil)
				run(t, b)
			})
		}
	})
}

// TestRealFencedRights: a right to the transactional ID and one to the topic are enough.
func TestRealFencedRights(t *testing.T) {
	c := startReal(t)
	c.seeds = c.SASLSeeds()
	topic := fresh("written")
	c.CreateTopic(t, topic, nil)
	c.Allow(t, kafkad.Observer, kmsg.ACLResourceTypeTransactionalId, "billing", kmsg.ACLOperationWrite)
	c.Allow(t, kafkad.Candidate, kmsg.ACLResourceTypeTransactionalId, "billing", kmsg.ACLOperationWrite)
	c.Allow(t, kafkad.Candidate, kmsg.ACLResourceTypeTopic, topic, kmsg.ACLOperationWrite)
	for _, user := range []string{kafkad.Observer, kafkad.Candidate} {
		t.Cleanup(func() { c.Revoke(t, user) })
	}
	users := map[string]string{"nobody": kafkad.Stranger, "half": kafkad.Observer, "leader": kafkad.Candidate, "intruder": "intruder"}
	fencedRights(t, c.scene(topic), func(user string) kgo.Opt { return as(users[user]) })
}

// TestRealFencedOrder: with any delay, each partition holds the terms in order.
func TestRealFencedOrder(t *testing.T) {
	soak(t)
	t.Parallel()
	fencedOrder(realScene(t), 8, nil)
}

// TestRealFencedRestart: each broker in turn is stopped and restarted, while a leader writes.
func TestRealFencedRestart(t *testing.T) {
	soak(t)
	c, b := kafkad.Shared(t), realScene(t)
	b.makeTopic(fencedPartitions)
	leader, l := b.elect("a"), newDiary()
	p, err := fenced.Open(within(b), leader.Term, leader.options(kgo.RecordPartitioner(kgo.ManualPartitioner())))
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(within(t))
	restarted := aside(func() error {
		defer stop()
		for n := range 3 {
			if err := errors.Join(c.Stop(n+1), c.Start(n+1), c.Complete(ctx)); err != nil {
				return err
			}
		}
		return nil
	})
	longest := time.Duration(0)
	for i := 0; ctx.Err() == nil; i++ {
		value, began := leader.wrote(strconv.Itoa(i)), time.Now()
		err := p.Produce(context.Background(), toEach(value)...)
		longest = max(longest, time.Since(began))
		if l.enter(value, err); err != nil {
			t.Logf("after %v: %v", time.Since(began), err)
		}
		if err != nil && !errors.Is(err, fenced.ErrUnknown) {
			t.Errorf("a leader cannot write: %v", err)
		}
	}
	if err := <-restarted; err != nil {
		t.Error(err)
	}
	_ = p.Close()
	t.Logf("the longest of %d transactions took %v", len(l.results), longest)
	b.check(l, 1)
}

// BenchmarkRealFenced measures one leader that has three brokers to itself.
func BenchmarkRealFenced(b *testing.B) {
	s := realScene(b)
	s.makeTopic(1)
	leader := s.elect("a")
	options := s.direct(kgo.DefaultProduceTopic(s.topic))
	b.Run("Open", func(b *testing.B) {
		quantiles(b, func() {
			p, err := fenced.Open(b.Context(), leader.Term, options)
			if err != nil {
				b.Fatal(err)
			}
			_ = p.Close()
		})
	})
	for _, pause := range []time.Duration{0, 50 * time.Millisecond} {
		b.Run("Produce/"+pause.String(), func(b *testing.B) {
			p := leader.open()
			quantiles(b, func() {
				s.produce(p, "x")
			}, pause)
		})
	}
}

// TestRealStaleInit: a client's outdated request does not invalidate a later one.
func TestRealStaleInit(t *testing.T) {
	if err := realScene(t).staleInit(); !errors.Is(err, kerr.ProducerFenced) {
		t.Errorf("with an outdated epoch: %v", err)
	}
}

// TestRealFencedOrderOverKills is TestRealFencedOrder while one broker after another is killed and
// restarted. Requests for an epoch and commits are late, transactions are aborted in doubt, and
// coordinators and leaders of partitions move.
func TestRealFencedOrderOverKills(t *testing.T) {
	soak(t)
	c := kafkad.Shared(t)
	over, stopped := make(chan struct{}), make(chan error, 1)
	kills := 0
	go func() {
		for {
			select {
			case <-over:
				stopped <- nil
				return
			default:
			}
			kills++
			n := rand.IntN(3) + 1
			if err := errors.Join(c.Kill(n), c.Start(n), c.Complete(within(t))); err != nil {
				stopped <- err
				return
			}
			time.Sleep(rand.N(3 * time.Second)) // so that kills come at any time of a term
		}
	}()
	fencedOrder(realScene(t), 4**realRuns, func() {
		close(over)
		if err := <-stopped; err != nil {
			t.Error(err)
		}
		t.Logf("%d kills", kills)
	})
}

// txnCoordinator returns the number of the broker that coordinates the election's transactions.
func (c contest) txnCoordinator() (n int) {
	c.Helper()
	wait.Until(c, "a coordinator", func() bool {
		got := c.admin().FindTxnCoordinators(within(c), c.name)[c.name]
		n = int(got.NodeID)
		return got.Err == nil
	})
	return n
}

// lose lets the request arrive at a broker that may be about to end. There may be no answer, and no
// connection.
func (l *letter) lose() {
	c := l.conn
	defer c.order.pass()
	c.mu.Lock()
	defer c.mu.Unlock()
	_ = c.Conn.SetWriteDeadline(time.Time{})
	_, _ = c.Conn.Write(l.bytes)
	if c.letter = nil; c.closed {
		_ = c.Conn.Close()
	}
}

// TestRealFencedCoordinatorKilled: a deposed leader's request reaches the coordinator just before
// the coordinator is killed, so that its outcome is unknown. The state that the next leader sees
// when its producer is open is final.
func TestRealFencedCoordinatorKilled(t *testing.T) {
	soak(t)
	for name, key := range map[string]kmsg.Key{"request for an epoch": kmsg.InitProducerID, "records": kmsg.Produce, "commit": kmsg.EndTxn} {
		for run := range *realRuns {
			t.Run(fmt.Sprint(name, " ", run), func(t *testing.T) { coordinatorKilled(t, key) })
		}
	}
}

func coordinatorKilled(t *testing.T, key kmsg.Key) {
	c, b := kafkad.Shared(t), realScene(t)
	b.makeTopic(1)
	old := b.elect("old")
	first := old.open()
	b.produce(first, "early")
	want := []string{old.wrote("early")}
	if key == kmsg.InitProducerID {
		_ = first.Close()
	}
	if err := c.Complete(within(t)); err != nil {
		t.Fatal(err)
	}
	coordinator := old.txnCoordinator()
	old.hold(key)
	done := aside(func() error {
		if key != kmsg.InitProducerID {
			return first.Produce(within(b), records("late")...)
		}
		_, err := fenced.Open(within(b), old.Term, old.options())
		return err
	})
	letter := old.caught()
	next := old.depose("next")
	letter.lose()
	time.Sleep(rand.N(30 * time.Millisecond)) // as far as the request gets in that time
	if err := c.Kill(coordinator); err != nil {
		t.Fatal(err)
	}
	var p *fenced.Producer
	b.Cleanup(func() {
		if p != nil {
			_ = p.Close()
		}
	})
	wait.Until(t, "the next producer", func() bool {
		var err error
		if p, err = fenced.Open(within(t), next.Term, next.options()); err != nil {
			t.Log(err)
		}
		return err == nil
	})
	seen := b.committed()
	b.lost(b.outcomeOf(done))
	_ = first.Close()
	if !slices.Equal(seen, want) && (key != kmsg.EndTxn || !slices.Equal(seen, append(want, old.wrote("late")))) {
		t.Errorf("the next leader sees %q", seen)
	}
	if err := errors.Join(c.Start(coordinator), c.Complete(within(t))); err != nil {
		t.Fatal(err)
	}
	b.produce(p, "mine")
	b.expect(append(seen, next.wrote("mine"))...)
}
