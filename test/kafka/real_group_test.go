//go:build integration

package kafka

import (
	"strings"
	"testing"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver/kafkalog/group"
	"github.com/tenure-go/tenure/internal/test/wait"
	"github.com/tenure-go/tenure/test/internal/kafkad/kafkad"
	"github.com/tenure-go/tenure/test/internal/relay"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// calm is a session, or a lease, that survives a busy machine.
const calm = time.Minute

func startGroup(t testing.TB, session time.Duration) *brokers {
	b := startReal(t)
	b.group.SessionTimeout = session
	return b
}

// coordinator returns the broker that coordinates the group.
func (b *brokers) coordinator() (n int, address string) {
	n = b.Coordinator(b.tb, b.group.Name)
	return n, b.Seeds()[n-1]
}

func TestRealGroupJoins(t *testing.T) {
	t.Parallel()
	groupJoins(&startGroup(t, calm).site)
}

// TestRealGroupLeave measures how long the next nomination takes.
func TestRealGroupLeave(t *testing.T) {
	soak(t)
	t.Parallel()
	groupLeave(&startGroup(t, calm).site, realRounds(10))
}

// TestRealGroupCutOff: one nominee reaches no broker, another does not reach the coordinator.
func TestRealGroupCutOff(t *testing.T) {
	soak(t)
	t.Parallel()
	const session = 6 * time.Second
	g := startGroup(t, session)
	_, coordinator := g.coordinator()
	groupCutOff(&g.site, realRounds(5), session, cuts{
		"all brokers":     relay.Set.Blackhole,
		"the coordinator": func(ways relay.Set) { ways[coordinator].Blackhole() },
	})
}

// TestRealGroupCoordinator: the coordinator is killed, and frozen. There is never more than one
// nominee, and one in the end.
func TestRealGroupCoordinator(t *testing.T) {
	soak(t)
	g := startGroup(t, 15*time.Second)
	all := g.joinMany(3)
	for _, what := range []string{"killed", "frozen"} {
		g.members(3)
		first := settled(t, all)
		before := first.changes()
		n, _ := g.coordinator()
		moved := aside(func() error {
			wait.Until(g.tb, "another coordinator", func() bool { return g.Coordinator(t, g.group.Name) != n })
			return nil
		})
		if what == "killed" {
			g.must(g.Kill(n))
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
		g.must(g.Heal(g.context()))
	}
}

// TestRealGroupRollingRestart: each broker is restarted in turn, and the nominee stays.
func TestRealGroupRollingRestart(t *testing.T) {
	soak(t)
	g := startGroup(t, calm)
	all := g.joinMany(3)
	first := settled(t, all)
	g.Roll(t)
	g.unmoved(3, all, first)
}

// TestRealGroupStatic: static members restart in turn and the nomination stays, with any of them as
// the group's leader. A member that stops permanently keeps it for a session.
func TestRealGroupStatic(t *testing.T) {
	soak(t)
	t.Parallel()
	g := startGroup(t, 30*time.Second)
	join := func(name string) *candidate { return g.join(static(name)) }
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

// TestRealGroupRights: the list in the package comment is enough, and a missing right is named.
func TestRealGroupRights(t *testing.T) {
	g := startGroup(t, calm)
	g.group.Topic = g.topic
	g.CreateTopic(t, g.topic, nil)
	t.Cleanup(func() { g.Revoke(t, kafkad.Candidate) })
	g.Allow(t, kafkad.Candidate, kmsg.ACLResourceTypeTopic, g.topic, kmsg.ACLOperationDescribe)
	refuse := func(words string) {
		t.Helper()
		wait.Until(t, words, func() bool {
			m, err := group.Join(within(t), g.as(kafkad.Candidate), g.group)
			if err == nil {
				_ = m.Close()
			}
			return err != nil && strings.Contains(err.Error(), words)
		})
	}
	refuse("grant Read on the group")
	g.Allow(t, kafkad.Candidate, kmsg.ACLResourceTypeGroup, g.group.Name, kmsg.ACLOperationRead)
	wait.Until(t, "the right has spread", func() bool {
		m, err := group.Join(within(t), g.as(kafkad.Candidate), g.group)
		if err == nil {
			wait.Until(t, "a nominee", m.Nominated)
			_ = m.Close()
		}
		return err == nil
	})
	g.group.Topic = g.topic + ".none"
	g.Allow(t, kafkad.Candidate, kmsg.ACLResourceTypeTopic, g.group.Topic, kmsg.ACLOperationDescribe)
	refuse("may not create it")
}

func TestRealGroupElects(t *testing.T) {
	soak(t)
	t.Parallel()
	groupElects(&startGroup(t, calm).site, tenure.Config{Lease: calm}, realRounds(15))
}

func TestRealGroupCoordinatorCut(t *testing.T) {
	soak(t)
	t.Parallel()
	g := startGroup(t, 6*time.Second)
	groupCoordinatorCut(&g.site, tenure.Config{Lease: 6 * time.Second}, realRounds(5), func() string {
		n, coordinator := g.coordinator()
		g.must(g.Prefer(g.context(), g.topic, n%kafkad.Brokers+1))
		g.must(g.Restore(g.context(), g.topic))
		return coordinator
	})
}
