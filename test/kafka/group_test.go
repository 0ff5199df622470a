package kafka

import (
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/kafkalog/group"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// cord is the connection of one client to the brokers. It can be cut without a signal to either
// side.
type cord struct {
	dial func(ctx context.Context, network, address string) (net.Conn, error)

	mu    sync.Mutex
	cut   func(address string) bool
	lag   time.Duration
	conns map[*strand]bool
}

// strand is one TCP connection of a cord.
type strand struct {
	net.Conn
	cord    *cord
	address string
	dead    bool
}

func newCord(dial func(context.Context, string, string) (net.Conn, error)) *cord {
	return &cord{dial: dial, conns: map[*strand]bool{}}
}

// Dial is for kgo.Dialer.
func (c *cord) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	if c.is(address) {
		ctx, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		<-ctx.Done()
		return nil, ctx.Err()
	}
	conn, err := c.dial(ctx, network, address)
	if err != nil {
		return nil, err
	}
	s := &strand{conn, c, address, false}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.conns[s] = true
	return s, nil
}

func (c *cord) is(address string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.cut != nil && c.cut(address)
}

// Cut swallows from now on all bytes to these addresses and from them.
func (c *cord) Cut(what func(address string) bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cut = what
}

// Mend ends the connections that have a gap and lets new ones pass.
func (c *cord) Mend() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for s := range c.conns {
		if c.cut != nil && c.cut(s.address) {
			_ = s.Conn.Close()
			delete(c.conns, s)
		}
	}
	c.cut = nil
}

// Sever swallows from now on all bytes on present connections. New connections pass.
func (c *cord) Sever() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for s := range c.conns {
		s.dead = true
	}
}

// swallows reports whether the connection has a gap.
func (s *strand) swallows() bool {
	s.cord.mu.Lock()
	defer s.cord.mu.Unlock()
	return s.dead || s.cord.cut != nil && s.cord.cut(s.address)
}

func (s *strand) Write(b []byte) (int, error) {
	if s.swallows() {
		return len(b), nil
	}
	return s.Conn.Write(b)
}

func (s *strand) Read(b []byte) (int, error) {
	for {
		n, err := s.Conn.Read(b)
		s.cord.mu.Lock()
		lag := s.cord.lag
		s.cord.mu.Unlock()
		time.Sleep(lag)
		if err != nil || !s.swallows() {
			return n, err
		}
	}
}

func anywhere(string) bool { return true }

// camp is a group of candidates on brokers in this process, in virtual time.
type camp struct {
	*cluster
	cfg group.Config
}

func encamp(t *testing.T, brokers int, opts ...kfake.Opt) *camp {
	return &camp{startVirtual(t, brokers, opts...), group.Config{Name: "billing"}}
}

// candidate is one member with its nominations.
type candidate struct {
	*group.Group
	cord *cord

	mu    sync.Mutex
	named []time.Time // alternately: the beginning and the end of a nomination
}

func (c *camp) join(change ...func(*group.Config)) *candidate {
	c.tb.Helper()
	cfg := c.cfg
	for _, f := range change {
		f(&cfg)
	}
	return enlist(c.tb, c.direct(), newCord(c.dial), cfg)
}

// enlist joins over its own cord.
func enlist(t testing.TB, connection []kgo.Opt, line *cord, cfg group.Config) *candidate {
	t.Helper()
	var g *group.Group
	eventually(t, "it joins", func() bool {
		var err error
		if g, err = group.Join(within(t), append(connection, kgo.Dialer(line.Dial)), cfg); err != nil {
			t.Log(err)
		}
		return err == nil || virtual()
	})
	if g == nil {
		t.FailNow()
	}
	m := &candidate{Group: g, cord: line}
	g.Nominate(m.see)
	t.Cleanup(func() { _ = g.Close() })
	return m
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

// TestGroupJoinsMoveNothing: the first member stays the nominee while ten others join and leave,
// even on a topic of twelve partitions.
func TestGroupJoinsMoveNothing(t *testing.T) {
	t.Parallel()
	for _, width := range []int32{1, 12} {
		synctest.Test(t, func(t *testing.T) {
			c := encamp(t, 1, kfake.SeedTopics(width, "billing.neli"))
			all := []*candidate{c.join()}
			first := settled(t, all)
			for range 10 {
				all = append(all, c.join())
				time.Sleep(7 * time.Second)
			}
			for _, m := range all[6:] {
				if err := m.Close(); err != nil {
					t.Error(err)
				}
			}
			time.Sleep(time.Minute)
			if got := nominees(all); len(got) != 1 || got[0] != first || first.changes() != 1 {
				t.Errorf("%d nominees, and the nomination of the first one changed %d times", len(got), first.changes())
			}
		})
	}
}

// TestGroupLeave: when the nominee leaves, another one is nominated as soon as all members have
// noticed, and earlier during a vacancy.
func TestGroupLeave(t *testing.T) {
	t.Parallel()
	for hurried, limit := range map[bool]time.Duration{false: 3100 * time.Millisecond, true: 100 * time.Millisecond} {
		synctest.Test(t, func(t *testing.T) {
			c := encamp(t, 1)
			all := []*candidate{c.join(), c.join(), c.join()}
			first := settled(t, all)
			time.Sleep(20 * time.Second)
			rest := without(all, first)
			began := time.Now()
			if hurried {
				for _, m := range rest {
					m.Vacant(true)
				}
			}
			if err := first.Close(); err != nil {
				t.Fatal(err)
			}
			if first.Nominated() {
				t.Error("it left and is the nominee")
			}
			settled(t, rest)
			took := time.Since(began)
			t.Log("hurried:", hurried, "next nominee after", took)
			if took > limit {
				t.Errorf("hurried: %v, the next is named after %v", hurried, took)
			}
		})
	}
}

// TestGroupCutOff: the nomination of a member that reaches no broker ends before the next member is
// nominated. When it reaches them again, it is an ordinary member.
func TestGroupCutOff(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := encamp(t, 1)
		all := []*candidate{c.join(), c.join(), c.join()}
		first := settled(t, all)
		rest := without(all, first)
		for range 10 {
			time.Sleep(10 * time.Second)
			began := time.Now()
			first.cord.Cut(anywhere)
			next := settled(t, rest)
			if first.changes() < 2 {
				t.Fatal("the next one is named while the first is nominated")
			}
			ended, named := first.at(first.changes()-1), next.at(next.changes()-1)
			if !ended.Before(named) || ended.Sub(began) > 15*time.Second {
				t.Errorf("the nomination ended %v after the cut, and the next began after %v", ended.Sub(began), named.Sub(began))
			}
			first.cord.Mend()
			before := first.changes()
			time.Sleep(10 * time.Second)
			if first.changes() != before || first.Err() != nil {
				t.Errorf("back again: %d changes, %v", first.changes()-before, first.Err())
			}
			first, rest = next, without(all, next)
		}
	})
}

// TestGroupLateAnswers: a nomination counts from when its requests were sent, not from when they
// were answered.
func TestGroupLateAnswers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := encamp(t, 1)
		m := c.join()
		settled(t, []*candidate{m})
		m.cord.mu.Lock()
		m.cord.lag = 400 * time.Millisecond // twice, for the length and the rest
		m.cord.mu.Unlock()
		time.Sleep(20 * time.Second)
		beats := c.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Heartbeat}, Observe: true, Count: -1})
		if err := beats.Wait(within(t), 1); err != nil {
			t.Fatal(err)
		}
		sent := time.Now()
		time.Sleep(time.Second)
		m.cord.Cut(anywhere)
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
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := encamp(t, 1)
		c.cfg.SessionTimeout = 2 * time.Minute
		all := []*candidate{c.join(), c.join()}
		first := settled(t, all)
		time.Sleep(5 * time.Minute)
		began := time.Now()
		first.cord.Cut(anywhere)
		for first.changes() < 2 {
			time.Sleep(100 * time.Millisecond)
		}
		if took := time.Since(began); first.Nominated() || took > 115*time.Second || first.Err() == nil {
			t.Errorf("the nomination ended after %v: %v", took, first.Err())
		}
		first.cord.Mend()
		settled(t, all)
		if first.changes() != 3 || first.Err() != nil {
			t.Errorf("it is not resumed: %v", first.Err())
		}
	})
}

// raw is a client that sends the requests of the test.
func (c *camp) raw(name string) (*kgo.Client, string) {
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

func ask[R kmsg.Response](c *camp, client *kgo.Client, req kmsg.Request) R {
	c.tb.Helper()
	answer, err := client.Request(within(c.tb), req)
	if err != nil {
		c.tb.Fatal(err)
	}
	return answer.(R)
}

// holdUp lets a member that was admitted and does not come delay the group, from the next join on.
func (c *camp) holdUp(kept time.Duration) {
	client, id := c.raw("billing")
	ask[*kmsg.JoinGroupResponse](c, client, joinRequest("billing", id, kept))
}

// TestGroupSlowMember: the group is delayed for much longer than the nominee's session, and the
// nominee stays.
func TestGroupSlowMember(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := encamp(t, 1)
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
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := encamp(t, 1)
		c.cfg.SessionTimeout = 30 * time.Second
		all := []*candidate{c.join(), c.join()}
		first := settled(t, all)
		time.Sleep(20 * time.Second)
		c.holdUp(20 * time.Second)
		all = append(all, c.join())
		time.Sleep(10 * time.Second)
		for _, m := range all {
			m.cord.Sever()
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
	t.Parallel()
	for _, lost := range []*kerr.Error{kerr.UnknownMemberID, kerr.IllegalGeneration} {
		synctest.Test(t, func(t *testing.T) {
			c := encamp(t, 1)
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
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := encamp(t, 1)
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
func (c *camp) stable() bool {
	client := c.client()
	req := kmsg.NewPtrDescribeGroupsRequest()
	req.Groups = []string{c.cfg.Name}
	return ask[*kmsg.DescribeGroupsResponse](c, client, req).Groups[0].State == "Stable"
}

// TestGroupRemoved: an operator removes the nominee from the group. It learns this from a
// heartbeat, and comes back as an ordinary member.
func TestGroupRemoved(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := encamp(t, 1)
		all := []*candidate{c.join(), c.join()}
		first := settled(t, all)
		time.Sleep(20 * time.Second)
		client := c.client()
		groups := kmsg.NewPtrDescribeGroupsRequest()
		groups.Groups = []string{"billing"}
		leave := kmsg.NewPtrLeaveGroupRequest()
		leave.Group = "billing"
		for _, m := range ask[*kmsg.DescribeGroupsResponse](c, client, groups).Groups[0].Members {
			var a kmsg.ConsumerMemberAssignment
			if err := a.ReadFrom(m.MemberAssignment); err != nil {
				t.Fatal(err)
			}
			if len(a.Topics) > 0 {
				leave.Members = append(leave.Members, kmsg.LeaveGroupRequestMember{MemberID: m.MemberID})
			}
		}
		if len(leave.Members) != 1 {
			t.Fatalf("%d members own something", len(leave.Members))
		}
		ask[*kmsg.LeaveGroupResponse](c, client, leave)
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
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := encamp(t, 1)
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
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := encamp(t, 1)
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
	t.Parallel()
	for name, settings := range map[string]map[string]string{
		"wide":      nil,
		"short":     {"retention.ms": "1000"},
		"compacted": {"cleanup.policy": "compact"},
	} {
		synctest.Test(t, func(t *testing.T) {
			c := encamp(t, 1)
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
	secure := encamp(t, 1, kfake.EnableSASL(), kfake.EnableACLs(), kfake.Superuser(plainSASL, "admin", "admin"),
		kfake.User(plainSASL, "poor", "poor", see),
		kfake.User(plainSASL, "reader", "reader", see, read), kfake.SeedTopics(1, "t"))
	open := encamp(t, 1, kfake.SeedTopics(1, "t"), kfake.GroupMaxSessionTimeout(20*time.Second))
	wrong := encamp(t, 1, kfake.EnableSASL(), kfake.Superuser(plainSASL, "admin", "admin"))
	// kfake itself hangs up.
	wrong.ControlKey(int16(kmsg.SASLAuthenticate), func(r kmsg.Request) (kmsg.Response, error, bool) {
		wrong.KeepControl()
		answer := r.ResponseKind().(*kmsg.SASLAuthenticateResponse)
		answer.ErrorCode = kerr.SaslAuthenticationFailed.Code
		return answer, nil, true
	})
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
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := encamp(t, 1)
		a := c.join(func(cfg *group.Config) { cfg.Name, cfg.Topic = "a", "shared" })
		b := c.join(func(cfg *group.Config) { cfg.Name, cfg.Topic = "b", "shared" })
		time.Sleep(time.Minute)
		if !a.Nominated() || !b.Nominated() || a.changes() != 1 || b.changes() != 1 {
			t.Error("two groups on one topic disturb each other")
		}
	})
}

// TestGroupRequests counts the requests of ten members in a minute.
func TestGroupRequests(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := encamp(t, 1)
		var all []*candidate
		for range 10 {
			all = append(all, c.join())
		}
		settled(t, all)
		time.Sleep(time.Minute)
		every := c.Fault(kfake.Fault{Observe: true, Count: -1})
		beats := c.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Heartbeat}, Observe: true, Count: -1})
		time.Sleep(10 * time.Minute)
		t.Logf("ten members: %d requests a minute, %d of them heartbeats", every.Hits()/10, beats.Hits()/10)
		if every.Hits() > 2050 {
			t.Errorf("ten members ask too much: %d in ten minutes", every.Hits())
		}
	})
}
