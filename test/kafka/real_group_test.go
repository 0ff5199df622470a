//go:build integration

package kafka

import (
	"fmt"
	"net"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver/kafkalog/group"
	"github.com/tenure-go/tenure/internal/test/wait"
	"github.com/tenure-go/tenure/test/internal/kafkad/kafkad"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// calm is a session, or a lease, that survives a busy machine.
const calm = time.Minute

// guild is a group of candidates on real brokers.
type guild struct {
	*brokers
	cfg group.Config
}

func startGuild(t testing.TB, session time.Duration) *guild {
	b := startReal(t)
	return &guild{b, group.Config{Name: b.topic + ".group", SessionTimeout: session}}
}

func (g *guild) join() *candidate {
	return enlist(g.tb, g.direct(), newCord((&net.Dialer{Timeout: time.Second}).DialContext), g.cfg)
}

func (g *guild) joinMany(n int) (all []*candidate) {
	for range n {
		all = append(all, g.join())
	}
	return all
}

// coordinator returns the broker that coordinates the group.
func (g *guild) coordinator() (n int, address string) {
	n = g.Coordinator(g.tb, g.cfg.Name)
	return n, g.Seeds()[n-1]
}

// spread returns the median, the 99th percentile and the largest value.
func spread(all []time.Duration) string {
	slices.Sort(all)
	ms := func(d time.Duration) time.Duration { return d.Round(100 * time.Microsecond) }
	return fmt.Sprintf("p50 %v, p99 %v, max %v (n=%d)", ms(all[len(all)/2]), ms(all[(len(all)*99)/100]), ms(all[len(all)-1]), len(all))
}

// members waits until the group is stable with this many members. It returns the member that owns a
// partition: the nominee, according to the coordinator.
func (g *guild) members(n int, meanwhile ...func()) (owner string) {
	g.tb.Helper()
	client := g.client()
	req := kmsg.NewPtrDescribeGroupsRequest()
	req.Groups = []string{g.cfg.Name}
	wait.Until(g.tb, fmt.Sprint(n, " members"), func() bool {
		for _, do := range meanwhile {
			do()
		}
		answer, err := req.RequestWith(g.context(), client)
		if err != nil || answer.Groups[0].State != "Stable" || len(answer.Groups[0].Members) != n {
			return false
		}
		for _, m := range answer.Groups[0].Members {
			var a kmsg.ConsumerMemberAssignment
			if err := a.ReadFrom(m.MemberAssignment); err != nil {
				g.tb.Fatal(err)
			}
			if len(a.Topics) > 0 {
				owner = m.MemberID
			}
		}
		return true
	})
	return owner
}

// unmoved waits until the group is stable with this many members, and fails if the nomination has
// moved.
func (g *guild) unmoved(n int, all []*candidate, first *candidate) {
	g.tb.Helper()
	g.members(n)
	if got := nominees(all); len(got) != 1 || got[0] != first || first.changes() != 1 {
		g.tb.Errorf("%d nominees, and the nomination of the first one changed %d times", len(got), first.changes())
	}
}

// TestRealGroupJoins: ten joins and five departures of other members move nothing.
func TestRealGroupJoins(t *testing.T) {
	t.Parallel()
	g := startGuild(t, calm)
	all := g.joinMany(1)
	first := settled(t, all)
	all = append(all, g.joinMany(10)...)
	g.unmoved(11, all, first)
	for _, m := range all[6:] {
		if err := m.Close(); err != nil {
			t.Log(err)
		}
	}
	g.unmoved(6, all, first)
}

// TestRealGroupLeave measures how long the next nomination takes.
func TestRealGroupLeave(t *testing.T) {
	soak(t)
	t.Parallel()
	g := startGuild(t, calm)
	for _, hurried := range []bool{false, true} {
		all := g.joinMany(3)
		var took []time.Duration
		for range realRounds(10) {
			first := settled(t, all)
			all = append(without(all, first), g.join())
			g.members(4)
			if !first.Nominated() {
				t.Error("a join moved the nomination")
			}
			began := time.Now()
			if hurried {
				for _, m := range all {
					m.Vacant(true)
				}
			}
			if err := first.Close(); err != nil {
				t.Log(err)
			}
			settled(t, all)
			took = append(took, time.Since(began))
		}
		t.Log("hurried:", hurried, "heartbeat 3s, next nominee", spread(took))
		for _, m := range all {
			_ = m.Close()
		}
	}
}

// TestRealGroupCutOff: one nominee reaches no broker, another does not reach the coordinator. Their
// nominations end before the next one begins, and they are ordinary members afterwards.
func TestRealGroupCutOff(t *testing.T) {
	soak(t)
	t.Parallel()
	g := startGuild(t, 6*time.Second)
	all := g.joinMany(3)
	_, coordinator := g.coordinator()
	for what, cut := range map[string]func(string) bool{
		"all brokers":     anywhere,
		"the coordinator": func(address string) bool { return address == coordinator },
	} {
		var ends, names []time.Duration
		for range realRounds(5) {
			g.members(3)
			first := settled(t, all)
			before := first.changes()
			began := time.Now()
			first.cord.Cut(cut)
			next := settled(t, without(all, first))
			if first.Nominated() {
				t.Fatal("the next one is named while the first is nominated")
			}
			wait.Until(t, "the first one notices it", func() bool { return first.changes() > before })
			ends, names = append(ends, first.at(before).Sub(began)), append(names, next.at(next.changes()-1).Sub(began))
			first.cord.Mend()
			wait.Until(t, "an ordinary member", func() bool { return first.Err() == nil })
		}
		t.Log("session 6s, cut from", what+": the nomination ended", spread(ends), "the next was named", spread(names))
	}
}

// TestRealGroupCoordinator: the coordinator is killed, and frozen. There is never more than one
// nominee, and one in the end.
func TestRealGroupCoordinator(t *testing.T) {
	soak(t)
	g := startGuild(t, 15*time.Second)
	all := g.joinMany(3)
	for _, what := range []string{"killed", "frozen"} {
		g.members(3)
		first := settled(t, all)
		before := first.changes()
		n, _ := g.coordinator()
		moved := aside(func() error {
			wait.Until(g.tb, "another coordinator", func() bool { return g.Coordinator(t, g.cfg.Name) != n })
			return nil
		})
		if what == "killed" {
			g.mustKill(n)
		} else {
			g.must(g.Pause(n))
		}
		var none time.Duration
		ctx := within(t)
		for over := false; !over || len(nominees(all)) != 1; time.Sleep(10 * time.Millisecond) {
			select {
			case <-moved:
				over = true
			case <-ctx.Done():
				t.Fatal("no member is nominated")
			default:
			}
			switch got := len(nominees(all)); {
			case got > 1:
				t.Fatalf("%s: %d nominees", what, got)
			case got == 0:
				none += 10 * time.Millisecond
			}
		}
		t.Logf("coordinator %s, session 15s: kept: %v, without a nominee for %v", what, first.changes() == before, none)
		g.mend()
	}
}

func (g *guild) mustKill(n int) {
	if err := g.Kill(n); err != nil {
		g.tb.Fatal(err)
	}
}

// mend starts and wakes all brokers.
func (g *guild) mend() {
	g.tb.Helper()
	if err := g.Heal(g.context()); err != nil {
		g.tb.Fatal(err)
	}
}

// TestRealGroupRollingRestart: each broker is restarted in turn, and the nominee stays.
func TestRealGroupRollingRestart(t *testing.T) {
	soak(t)
	g := startGuild(t, calm)
	all := g.joinMany(3)
	first := settled(t, all)
	for n := 1; n <= 3; n++ {
		if err := g.Stop(n); err != nil {
			t.Fatal(err)
		}
		if err := g.Cluster.Start(n); err != nil {
			t.Fatal(err)
		}
		g.mend()
	}
	g.unmoved(3, all, first)
}

// TestRealGroupStatic: static members restart in turn and the nomination stays, with any of them as
// the group's leader. A member that stops permanently keeps it for a session.
func TestRealGroupStatic(t *testing.T) {
	soak(t)
	t.Parallel()
	g := startGuild(t, 30*time.Second)
	join := func(name string) *candidate {
		cfg := g.cfg
		cfg.Instance = name
		return enlist(t, g.direct(), newCord((&net.Dialer{Timeout: time.Second}).DialContext), cfg)
	}
	first := join("a")
	settled(t, []*candidate{first})
	other := join("b")
	g.members(2)
	for range 3 {
		_ = first.Close()
		first = join("a")
		settled(t, []*candidate{first})
		_ = other.Close()
		before := other.changes()
		other = join("b")
		g.members(2)
		if before+other.changes() != 0 || !first.Nominated() {
			t.Error("a restart moved the nomination")
		}
	}
	_ = first.Close()
	began := time.Now()
	settled(t, []*candidate{other})
	if took := time.Since(began); took < 15*time.Second {
		t.Errorf("a stop for good moves the nomination after %v", took)
	}
}

// TestRealGroupMemory measures the memory of a further group in a process.
func TestRealGroupMemory(t *testing.T) {
	const groups = 20
	g := startGuild(t, calm)
	g.cfg.Topic = g.topic
	g.CreateTopic(t, g.topic, nil)
	name := g.cfg.Name
	_ = g.join()
	used := func() int64 {
		heap()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc + m.StackInuse)
	}
	before, goroutines := used(), runtime.NumGoroutine()
	for i := range groups {
		g.cfg.Name = fmt.Sprint(name, i)
		m := g.join()
		wait.Until(t, "a nominee", m.Nominated)
	}
	each := (used() - before) / groups
	t.Logf("a further group: %d KiB of heap and stacks, %d goroutines", each/1024, (runtime.NumGoroutine()-goroutines)/groups)
	if each > 2<<20 {
		t.Errorf("%d bytes", each)
	}
}

// TestRealGroupRights: the list in the package comment is enough, and a missing right is named.
func TestRealGroupRights(t *testing.T) {
	g := startGuild(t, calm)
	g.cfg.Topic = g.topic
	g.CreateTopic(t, g.topic, nil)
	t.Cleanup(func() { g.Revoke(t, kafkad.Candidate) })
	g.Allow(t, kafkad.Candidate, kmsg.ACLResourceTypeTopic, g.topic, kmsg.ACLOperationDescribe)
	refuse := func(words string) {
		t.Helper()
		wait.Until(t, words, func() bool {
			m, err := group.Join(within(t), g.as(kafkad.Candidate), g.cfg)
			if err == nil {
				_ = m.Close()
			}
			return err != nil && strings.Contains(err.Error(), words)
		})
	}
	refuse("grant Read on the group")
	g.Allow(t, kafkad.Candidate, kmsg.ACLResourceTypeGroup, g.cfg.Name, kmsg.ACLOperationRead)
	wait.Until(t, "the right has spread", func() bool {
		m, err := group.Join(within(t), g.as(kafkad.Candidate), g.cfg)
		if err == nil {
			wait.Until(t, "a nominee", m.Nominated)
			_ = m.Close()
		}
		return err == nil
	})
	g.cfg.Topic = g.topic + ".none"
	g.Allow(t, kafkad.Candidate, kmsg.ACLResourceTypeTopic, g.cfg.Topic, kmsg.ACLOperationDescribe)
	refuse("may not create it")
}

// TestRealGroupElects covers whole elections. Nominees that leave hand over, and joins move
// nothing.
func TestRealGroupElects(t *testing.T) {
	soak(t)
	t.Parallel()
	g := startGuild(t, calm)
	var l ledger
	run := func(id int) { l.run(t, g.join(), g.open(g.direct()), tenure.Config{ID: fmt.Sprint(id), Lease: calm}) }
	for id := range 3 {
		run(id)
	}
	l.next(t, time.Now(), 0)
	var took []time.Duration
	for id := range realRounds(15) {
		g.members(3)
		at := l.last()
		run(3 + id)
		g.members(4)
		if l.last().term != at.term || !at.runner.Nominated() {
			t.Error("a join moved leadership")
		}
		began := time.Now()
		l.leave(at.runner)
		took = append(took, l.next(t, began, at.term))
	}
	l.check(t)
	t.Log("heartbeat 3s, hand-over by a nominee that leaves", spread(took), took)
}

// TestRealGroupElectionCut: only the leader cannot reach the coordinator.
func TestRealGroupElectionCut(t *testing.T) {
	soak(t)
	t.Parallel()
	g := startGuild(t, 6*time.Second)
	var l ledger
	for id := range 3 {
		m := g.join()
		l.run(t, m, g.open(g.direct(kgo.Dialer(m.cord.Dial))), tenure.Config{ID: fmt.Sprint(id), Lease: 6 * time.Second})
	}
	l.next(t, time.Now(), 0)
	n, coordinator := g.coordinator()
	g.leadElsewhere(n)
	var ends, took []time.Duration
	for range realRounds(5) {
		g.members(3)
		at := l.last()
		began := time.Now()
		at.runner.cord.Cut(func(address string) bool { return address == coordinator })
		took = append(took, l.next(t, began, at.term))
		all := l.spells()
		ends = append(ends, all[len(all)-2].end.Sub(began))
		at.runner.cord.Mend()
		wait.Until(t, "an ordinary member", func() bool { return at.runner.Err() == nil })
	}
	l.check(t)
	t.Log("session 6s, lease 6s, the coordinator is cut off for the leader: its work ends", spread(ends), "the next one leads", spread(took))
}

// leadElsewhere makes another broker the leader of the log.
func (g *guild) leadElsewhere(n int) {
	g.tb.Helper()
	if g.Leader(g.tb, g.topic, 0) != n {
		return
	}
	replicas := []int32{int32(n%3 + 1), int32((n+1)%3 + 1), int32(n)}
	p := kmsg.NewAlterPartitionAssignmentsRequestTopicPartition()
	p.Partition, p.Replicas = 0, replicas
	at := kmsg.NewAlterPartitionAssignmentsRequestTopic()
	at.Topic, at.Partitions = g.topic, append(at.Partitions, p)
	order := kmsg.NewPtrAlterPartitionAssignmentsRequest()
	order.Topics = append(order.Topics, at)
	elect := kmsg.NewPtrElectLeadersRequest()
	elect.Topics = []kmsg.ElectLeadersRequestTopic{{Topic: g.topic, Partitions: []int32{0}}}
	client := g.client()
	wait.Until(g.tb, "another leader of the log", func() bool {
		_, _ = order.RequestWith(g.context(), client)
		_, _ = elect.RequestWith(g.context(), client)
		return g.Leader(g.tb, g.topic, 0) != n
	})
}
