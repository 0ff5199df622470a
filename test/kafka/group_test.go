package kafka

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/kafkalog/group"
	"github.com/tenure-go/tenure/test/internal/figures"
	"github.com/tenure-go/tenure/test/internal/relay"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// candidate is one member with its nominations.
type candidate struct {
	*group.Group
	ways relay.Set

	mu    sync.Mutex
	named []time.Time // alternately: the beginning and the end of a nomination
}

// join joins over its own relays.
func (s *site) join(change ...func(*group.Config)) *candidate {
	s.tb.Helper()
	cfg := s.group
	for _, f := range change {
		f(&cfg)
	}
	m := &candidate{ways: s.relays()}
	eventually(s.tb, "it joins", func() bool {
		var err error
		if m.Group, err = group.Join(within(s.tb), s.through(m.ways), cfg); err != nil {
			s.tb.Log(err)
		}
		return err == nil || virtual()
	})
	if m.Group == nil {
		s.tb.FailNow()
	}
	m.Nominate(m.see)
	s.tb.Cleanup(func() { _ = m.Close() })
	return m
}

func (s *site) joinMany(n int) (all []*candidate) {
	for range n {
		all = append(all, s.join())
	}
	return all
}

// members waits until the group is stable with this many members.
func (s *site) members(n int, meanwhile ...func()) {
	s.tb.Helper()
	eventually(s.tb, fmt.Sprint(n, " members"), func() bool {
		for _, do := range meanwhile {
			do()
		}
		answer, err := s.admin().DescribeGroups(within(s.tb), s.group.Name)
		got := answer[s.group.Name]
		return err == nil && got.State == "Stable" && len(got.Members) == n
	})
}

// unmoved waits until the group is stable with this many members, and fails if the nomination has
// moved.
func (s *site) unmoved(n int, all []*candidate, first *candidate) {
	s.tb.Helper()
	s.members(n)
	pass(time.Minute)
	if got := nominees(all); len(got) != 1 || got[0] != first || first.changes() != 1 {
		s.tb.Errorf("%d nominees, and the nomination of the first one changed %d times", len(got), first.changes())
	}
}

// pass lets virtual time pass, in which everything that is due happens.
func pass(d time.Duration) {
	if virtual() {
		time.Sleep(d)
	}
}

func (m *candidate) see(yes bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if yes == (len(m.named)%2 == 0) {
		m.named = append(m.named, time.Now())
	}
}

// changes returns how often its nomination has changed.
func (m *candidate) changes() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.named)
}

func (m *candidate) at(i int) time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.named[i]
}

// nominees returns all members that are nominated at one instant. It checks them twice, because the
// first loop takes time.
func nominees(of []*candidate) (all []*candidate) {
	for _, m := range of {
		if m.Nominated() {
			all = append(all, m)
		}
	}
	return slices.DeleteFunc(all, func(m *candidate) bool { return !m.Nominated() })
}

// settled waits until one of them is the nominee, and returns it.
func settled(t testing.TB, of []*candidate) *candidate {
	t.Helper()
	eventually(t, "one nominee", func() bool { return len(nominees(of)) == 1 })
	return nominees(of)[0]
}

func without(all []*candidate, one *candidate) (rest []*candidate) {
	for _, m := range all {
		if m != one {
			rest = append(rest, m)
		}
	}
	return rest
}

// TestGroupJoinsMoveNothing runs on a topic of one partition, and of twelve.
func TestGroupJoinsMoveNothing(t *testing.T) {
	for _, width := range []int32{1, 12} {
		each(t, width, func(_ *testing.T, c *cluster) { groupJoins(&c.site) }, kfake.SeedTopics(width, "billing.neli"))
	}
}

// groupJoins: the first member stays the nominee while ten others join and five leave.
func groupJoins(p *site) {
	all := p.joinMany(1)
	first := settled(p.tb, all)
	for range 10 {
		all = append(all, p.join())
		pass(7 * time.Second)
	}
	p.unmoved(11, all, first)
	for _, m := range all[6:] {
		if err := m.Close(); err != nil {
			p.tb.Log(err)
		}
	}
	p.unmoved(6, all, first)
}

func TestGroupLeave(t *testing.T) {
	inBubble(t, 1, func(_ *testing.T, c *cluster) { groupLeave(&c.site, 10) })
}

// groupLeave: a join moves nothing. When the nominee leaves, another one is nominated as soon as
// all members have noticed, and earlier during a vacancy.
func groupLeave(p *site, rounds int) {
	for hurried, limit := range map[bool]time.Duration{false: 3100 * time.Millisecond, true: 100 * time.Millisecond} {
		all := p.joinMany(3)
		var took figures.Dist
		for range rounds {
			first := settled(p.tb, all)
			all = append(without(all, first), p.join())
			p.members(4)
			pass(20 * time.Second)
			if !first.Nominated() {
				p.tb.Error("a join moved the nomination")
			}
			prompt(p.tb, limit, func() {
				began := time.Now()
				if hurried {
					for _, m := range all {
						m.Vacant(true)
					}
				}
				if err := first.Close(); err != nil {
					p.tb.Log(err)
				}
				if first.Nominated() {
					p.tb.Error("it left and is the nominee")
				}
				settled(p.tb, all)
				took = append(took, time.Since(began))
			})
		}
		p.tb.Log("hurried:", hurried, "heartbeat 3s, next nominee", took)
		for _, m := range all {
			_ = m.Close()
		}
	}
}

func TestGroupCutOff(t *testing.T) {
	inBubble(t, 1, func(_ *testing.T, c *cluster) {
		groupCutOff(&c.site, 10, 15*time.Second, cuts{"all brokers": relay.Set.Blackhole})
	})
}

// cuts are the ways to cut a member off, by what it cannot reach.
type cuts map[string]func(relay.Set)

// groupCutOff: the nomination of a member that is cut off ends before the next member is nominated.
// When it is back, it is an ordinary member.
func groupCutOff(p *site, rounds int, session time.Duration, from cuts) {
	all := p.joinMany(3)
	for what, cut := range from {
		var ends, names figures.Dist
		for range rounds {
			p.members(3)
			first := settled(p.tb, all)
			pass(10 * time.Second)
			ended, named := p.cutOff(first, without(all, first), cut)
			if virtual() && (ended >= named || ended > session) {
				p.tb.Errorf("the nomination ended %v after the cut, and the next began after %v", ended, named)
			}
			ends, names = append(ends, ended), append(names, named)
			before := first.changes()
			first.ways.Heal()
			eventually(p.tb, "an ordinary member", func() bool { return first.Err() == nil })
			pass(10 * time.Second)
			if first.changes() != before || first.Err() != nil {
				p.tb.Errorf("back again: %d changes, %v", first.changes()-before, first.Err())
			}
		}
		p.tb.Log("session", session, "cut from", what+": the nomination ended", ends, "the next was named", names)
	}
}

// cutOff cuts the nominee off, and returns how long after that its nomination ended and the next
// one began.
func (s *site) cutOff(first *candidate, rest []*candidate, cut func(relay.Set)) (ended, named time.Duration) {
	s.tb.Helper()
	before := first.changes()
	began := time.Now()
	cut(first.ways)
	next := settled(s.tb, rest)
	if first.Nominated() {
		s.tb.Fatal("the next one is named while the first is nominated")
	}
	eventually(s.tb, "the first one notices it", func() bool { return first.changes() > before })
	return first.at(before).Sub(began), next.at(next.changes() - 1).Sub(began)
}

// TestGroupLateAnswers: a nomination counts from when its requests were sent, not from when they
// were answered.
func TestGroupLateAnswers(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, c *cluster) {
		m := c.join()
		settled(t, []*candidate{m})
		m.ways.Delay(400 * time.Millisecond)
		time.Sleep(20 * time.Second)
		beats := c.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Heartbeat}, Observe: true, Count: -1})
		if err := beats.Wait(within(t), 1); err != nil {
			t.Fatal(err)
		}
		sent := time.Now()
		time.Sleep(time.Second)
		m.ways.Blackhole()
		if m.changes() != 1 {
			t.Fatal("late answers ended the nomination")
		}
		time.Sleep(time.Until(sent.Add(14300 * time.Millisecond)))
		if m.Nominated() || m.changes() != 2 {
			t.Error("it is nominated for longer than the coordinator waits, less the margin")
		}
	})
}

// TestGroupResume: a cut that is shorter than the session, but longer than the session less its
// margin, ends the nomination. An answered heartbeat resumes it, without another nominee in
// between.
func TestGroupResume(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, c *cluster) {
		c.group.SessionTimeout = 2 * time.Minute
		all := []*candidate{c.join(), c.join()}
		first := settled(t, all)
		time.Sleep(5 * time.Minute)
		began := time.Now()
		first.ways.Blackhole()
		for first.changes() < 2 {
			time.Sleep(100 * time.Millisecond)
		}
		if took := time.Since(began); first.Nominated() || took > 115*time.Second || first.Err() == nil {
			t.Errorf("the nomination ended after %v: %v", took, first.Err())
		}
		first.ways.Heal()
		settled(t, all)
		if first.changes() != 3 || first.Err() != nil {
			t.Errorf("it is not resumed: %v", first.Err())
		}
	})
}

// raw is a client that sends the requests of the test.
func (c *cluster) raw(name string) (*kgo.Client, string) {
	client := c.client()
	answer := ask[*kmsg.JoinGroupResponse](c, client, joinRequest(name, "", 15*time.Second))
	if err := kerr.ErrorForCode(answer.ErrorCode); !errors.Is(err, kerr.MemberIDRequired) {
		c.tb.Fatal(err)
	}
	return client, answer.MemberID
}

// joinRequest asks for a place that is kept for this time, even in silence.
func joinRequest(name, id string, kept time.Duration) *kmsg.JoinGroupRequest {
	req := kmsg.NewPtrJoinGroupRequest()
	req.Group, req.MemberID, req.ProtocolType = name, id, "consumer"
	req.SessionTimeoutMillis, req.RebalanceTimeoutMillis = int32(kept.Milliseconds()), int32(kept.Milliseconds())
	p := kmsg.NewJoinGroupRequestProtocol()
	m := kmsg.NewConsumerMemberMetadata()
	m.Version, m.Topics = 3, []string{name + ".neli"}
	p.Name, p.Metadata = "tenure", m.AppendTo(nil)
	req.Protocols = append(req.Protocols, p)
	return req
}

func ask[R kmsg.Response](c *cluster, client *kgo.Client, req kmsg.Request) R {
	c.tb.Helper()
	answer, err := client.Request(within(c.tb), req)
	if err != nil {
		c.tb.Fatal(err)
	}
	return answer.(R)
}

// holdUp lets a member that was admitted and does not come delay the group, from the next join on.
func (c *cluster) holdUp(kept time.Duration) {
	client, id := c.raw("billing")
	ask[*kmsg.JoinGroupResponse](c, client, joinRequest("billing", id, kept))
}

// TestGroupSlowMember: the group is delayed for much longer than the nominee's session, and the
// nominee stays.
func TestGroupSlowMember(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, c *cluster) {
		all := []*candidate{c.join(), c.join()}
		first := settled(t, all)
		time.Sleep(20 * time.Second)
		c.holdUp(time.Minute)
		all = append(all, c.join())
		time.Sleep(50 * time.Second)
		if c.stable() {
			t.Error("the group is not held up")
		}
		time.Sleep(time.Minute)
		joins := c.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.JoinGroup}, Group: "billing", Observe: true, Count: -1})
		time.Sleep(time.Minute)
		if !c.stable() || joins.Hits() > 0 || first.changes() != 1 || len(nominees(all)) != 1 {
			t.Errorf("%d nominees, the nomination of the first changed %d times, and %d joins go on", len(nominees(all)), first.changes(), joins.Hits())
		}
	})
}

// TestGroupDeadConnection: the connections over which members wait for the group die silently. The
// members ask again over others, and miss nothing.
func TestGroupDeadConnection(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, c *cluster) {
		c.group.SessionTimeout = 30 * time.Second
		all := []*candidate{c.join(), c.join()}
		first := settled(t, all)
		time.Sleep(20 * time.Second)
		c.holdUp(20 * time.Second)
		all = append(all, c.join())
		time.Sleep(10 * time.Second)
		for _, m := range all {
			m.ways.Sever()
		}
		time.Sleep(20 * time.Second)
		if !c.stable() || first.changes() != 1 || len(nominees(all)) != 1 || first.Err() != nil {
			t.Errorf("stable: %v, %d nominees, the nomination of the first changed %d times: %v", c.stable(), len(nominees(all)), first.changes(), first.Err())
		}
	})
}

// TestGroupPlaceLost: a nominee that learns that it is not a member is no longer nominated, whether
// or not it can join again.
func TestGroupPlaceLost(t *testing.T) {
	for _, lost := range []*kerr.Error{kerr.UnknownMemberID, kerr.IllegalGeneration} {
		each(t, lost.Message, func(t *testing.T, c *cluster) {
			m := c.join()
			settled(t, []*candidate{m})
			time.Sleep(20 * time.Second)
			full := c.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.JoinGroup}, Count: -1, TopLevel: true, Err: kerr.CoordinatorLoadInProgress})
			c.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Heartbeat}, TopLevel: true, Err: lost})
			time.Sleep(4 * time.Second)
			if m.Nominated() || m.changes() != 2 {
				t.Errorf("after %v it is the nominee", lost)
			}
			full.Remove()
			time.Sleep(4 * time.Second)
			if !m.Nominated() || m.changes() != 3 {
				t.Errorf("after %v it does not come back: %v", lost, m.Err())
			}
		})
	}
}

// TestGroupNeverShared: a member that should assign the partitions does not. The group is without a
// nominee for a session at most.
func TestGroupNeverShared(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, c *cluster) {
		client, id := c.raw("billing")
		if got := ask[*kmsg.JoinGroupResponse](c, client, joinRequest("billing", id, 20*time.Second)); got.LeaderID != id {
			t.Fatalf("%s leads, not %s", got.LeaderID, id)
		}
		all := []*candidate{c.join(), c.join()}
		began := time.Now()
		for len(nominees(all)) == 0 && time.Since(began) < 2*time.Minute {
			time.Sleep(time.Second)
		}
		took := time.Since(began)
		t.Log("a nominee after", took)
		if took < 5*time.Second || took > 40*time.Second || len(nominees(all)) != 1 {
			t.Errorf("%d nominees after %v", len(nominees(all)), took)
		}
	})
}

// stable reports whether the partitions of the group are assigned.
func (s *site) stable() bool {
	got, err := s.admin().DescribeGroups(within(s.tb), s.group.Name)
	return err == nil && got[s.group.Name].State == "Stable"
}

// TestGroupRemoved: an operator removes the nominee from the group. It learns this from a
// heartbeat, and comes back as an ordinary member.
func TestGroupRemoved(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, c *cluster) {
		all := []*candidate{c.join(), c.join()}
		first := settled(t, all)
		time.Sleep(20 * time.Second)
		leave := kmsg.NewPtrLeaveGroupRequest()
		leave.Group = c.group.Name
		groups, err := c.admin().DescribeGroups(within(t), leave.Group)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range groups[leave.Group].Members {
			if owns, _ := m.Assigned.AsConsumer(); len(owns.Topics) > 0 {
				leave.Members = append(leave.Members, kmsg.LeaveGroupRequestMember{MemberID: m.MemberID})
			}
		}
		if len(leave.Members) != 1 {
			t.Fatalf("%d members own something", len(leave.Members))
		}
		ask[*kmsg.LeaveGroupResponse](c, c.client(), leave)
		time.Sleep(10 * time.Second)
		if got := nominees(all); len(got) != 1 || got[0] == first || first.changes() != 2 || first.Err() != nil {
			t.Errorf("%d nominees, the nomination of the first changed %d times: %v", len(got), first.changes(), first.Err())
		}
	})
}

// static makes a member a static one with this name.
func static(name string) func(*group.Config) { return func(cfg *group.Config) { cfg.Instance = name } }

// TestGroupStatic: a static member that stops permanently keeps its place for a session. A second
// member with its name is refused. Brokers give a restarted member its place back; kfake assigns
// the partitions again.
func TestGroupStatic(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, c *cluster) {
		first := c.join(static("a"))
		settled(t, []*candidate{first})
		other := c.join(static("b"))
		time.Sleep(20 * time.Second)
		_ = first.Close()
		time.Sleep(10 * time.Second)
		if other.changes() != 0 {
			t.Error("a stop moved the nomination at once")
		}
		time.Sleep(10 * time.Second)
		settled(t, []*candidate{other})
		usurper := c.join(static("b"))
		time.Sleep(10 * time.Second)
		if err := other.Err(); other.Nominated() || !errors.Is(err, kerr.FencedInstanceID) || !strings.Contains(err.Error(), "instance b") {
			t.Errorf("two of a name: %v: %v", other.Nominated(), err)
		}
		settled(t, []*candidate{usurper})
	})
}

// TestGroupBlockingSee: a callback that blocks delays neither the group nor the end of its
// nomination.
func TestGroupBlockingSee(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, c *cluster) {
		first := c.join()
		settled(t, []*candidate{first})
		block := make(chan struct{})
		first.Nominate(func(bool) { <-block })
		other := c.join()
		time.Sleep(time.Minute)
		if !first.Nominated() || other.Nominated() {
			t.Error("a blocked callback lost the nomination")
		}
		if err := first.Close(); err != nil {
			t.Error(err)
		}
		settled(t, []*candidate{other})
		close(block)
	})
}

// TestGroupAnyTopic: the settings of the topic do not matter, nor does its later deletion.
func TestGroupAnyTopic(t *testing.T) {
	for name, settings := range map[string]map[string]string{
		"wide":      nil,
		"short":     {"retention.ms": "1000"},
		"compacted": {"cleanup.policy": "compact"},
	} {
		each(t, name, func(t *testing.T, c *cluster) {
			if err := c.CreateTopic(name, 12, settings); err != nil {
				t.Fatal(err)
			}
			m := c.join(func(cfg *group.Config) { cfg.Topic, cfg.NoCreate = name, true })
			settled(t, []*candidate{m})
			if err := c.DeleteTopic(name); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Minute)
			if !m.Nominated() || m.changes() != 1 || m.Err() != nil {
				t.Errorf("%s: the topic is deleted: %v", name, m.Err())
			}
		})
	}
}

// TestGroupRefusals: wrong settings are reported soon, with the remedy.
func TestGroupRefusals(t *testing.T) {
	t.Parallel()
	synctest.Test(t, groupRefusals)
}

func groupRefusals(t *testing.T) {
	see := kfake.ACL{Resource: kmsg.ACLResourceTypeTopic, Name: "*", Pattern: kmsg.ACLResourcePatternTypeLiteral, Operation: kmsg.ACLOperationDescribe, Allow: true}
	read := kfake.ACL{Resource: kmsg.ACLResourceTypeGroup, Name: "g", Pattern: kmsg.ACLResourcePatternTypeLiteral, Operation: kmsg.ACLOperationRead, Allow: true}
	secure := startVirtual(t, 1, kfake.EnableSASL(), kfake.EnableACLs(), kfake.Superuser(plainSASL, "admin", "admin"),
		kfake.User(plainSASL, "poor", "poor", see),
		kfake.User(plainSASL, "reader", "reader", see, read), kfake.SeedTopics(1, "t"))
	open := startVirtual(t, 1, kfake.SeedTopics(1, "t"), kfake.GroupMaxSessionTimeout(20*time.Second))
	wrong := startVirtual(t, 1, kfake.EnableSASL(), kfake.Superuser(plainSASL, "admin", "admin"))
	wrong.refuseLogins()
	foreign := open.client(kgo.ConsumerGroup("foreign"), kgo.ConsumeTopics("t"), kgo.Balancers(kgo.RangeBalancer()), kgo.SessionTimeout(15*time.Second))
	eventually(t, "an ordinary consumer", func() bool { _, n := foreign.GroupMetadata(); return n > 0 })
	cases := []struct {
		name       string
		connection []kgo.Opt
		cfg        group.Config
		denied     bool
		words      string
	}{
		{"no broker", open.direct(kgo.SeedBrokers("127.0.0.1:1")), group.Config{}, false, "unable to dial"},
		{"wrong password", wrong.direct(as("reader")), group.Config{}, true, "SASL_AUTHENTICATION_FAILED"},
		{"no topic", open.direct(), group.Config{Topic: "none", NoCreate: true}, false, "does not exist"},
		{"no right to create", secure.direct(as("poor")), group.Config{Topic: "none"}, true, "kafka-topics.sh --create --topic none"},
		{"no right to the group", secure.direct(as("poor")), group.Config{Topic: "t"}, true, "grant Read on the group"},
		{"another kind of member", open.direct(), group.Config{Name: "foreign", Topic: "t"}, false, "ordinary consumers"},
		{"too long a session", open.direct(), group.Config{Topic: "t", SessionTimeout: time.Minute}, false, "group.max.session.timeout.ms"},
		{"a group in the connection", open.direct(kgo.ConsumerGroup("x")), group.Config{}, false, "leave out kgo.ConsumerGroup"},
		{"a name of other characters", open.direct(), group.Config{Name: "a b"}, false, "Name"},
	}
	for _, c := range cases {
		if c.cfg.Name == "" {
			c.cfg.Name = "g"
		}
		prompt(t, promptly, func() {
			g, err := group.Join(within(t), c.connection, c.cfg)
			if err == nil {
				_ = g.Close()
				t.Errorf("%s: joined", c.name)
			} else if !strings.Contains(err.Error(), c.words) || errors.Is(err, driver.ErrDenied) != c.denied {
				t.Errorf("%s: %v", c.name, err)
			}
		})
	}
	g, err := group.Join(within(t), secure.direct(as("reader")), group.Config{Name: "g", Topic: "t"})
	if err != nil {
		t.Fatal(err)
	}
	_ = g.Close()
}

// TestGroupTwoOnOneTopic: groups with the same topic have one nominee each and do not affect each
// other.
func TestGroupTwoOnOneTopic(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, c *cluster) {
		a := c.join(func(cfg *group.Config) { cfg.Name, cfg.Topic = "a", "shared" })
		b := c.join(func(cfg *group.Config) { cfg.Name, cfg.Topic = "b", "shared" })
		time.Sleep(time.Minute)
		if !a.Nominated() || !b.Nominated() || a.changes() != 1 || b.changes() != 1 {
			t.Error("two groups on one topic disturb each other")
		}
	})
}
