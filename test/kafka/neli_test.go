package kafka

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/compat/neli"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/kafkalog/group"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// process is a goNELI program with a diary of its events.
type process struct {
	neli.Neli
	t          testing.TB
	name       string
	connection []kgo.Opt

	mu    sync.Mutex
	diary []string
}

func (p *process) barrier(e neli.Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.diary = append(p.diary, e.String())
}

func (p *process) expect(events ...neli.Event) {
	p.t.Helper()
	var want []string
	for _, e := range events {
		want = append(want, e.String())
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if !slices.Equal(p.diary, want) {
		p.t.Errorf("%s got the events %v, want %v", p.name, p.diary, want)
	}
	p.diary = nil
}

// begin starts a process of the site's group.
func (s *site) begin(name string, change ...func(*neli.Config)) *process {
	s.tb.Helper()
	p := &process{t: s.tb, name: name}
	cfg := neli.Config{
		KafkaConfig:   neli.KafkaConfigMap{"heartbeat.interval.ms": 500},
		ClientOptions: s.direct(),
		LeaderGroupID: s.group.Name, Name: name, Scribe: slog.New(slog.DiscardHandler),
	}
	for _, c := range change {
		c(&cfg)
	}
	p.connection = cfg.ClientOptions
	var err error
	if p.Neli, err = neli.New(cfg, p.barrier); err != nil {
		s.tb.Fatal(err)
	}
	s.tb.Cleanup(func() { _ = p.Close() })
	return p
}

// mustLead pulses until it leads.
func (p *process) mustLead() {
	p.t.Helper()
	if leads, err := p.Pulse(left()); !leads || err != nil {
		p.t.Fatalf("%s does not lead in time: %v", p.name, err)
	}
}

// idle pulses without leading.
func (p *process) idle(during time.Duration) {
	p.t.Helper()
	if leads, err := p.Pulse(during); leads || err != nil {
		p.t.Fatalf("%s leads: %v, %v", p.name, leads, err)
	}
}

func (p *process) mustClose() {
	p.t.Helper()
	if err := p.Close(); err != nil || p.State() != neli.Closed || p.IsLeader() {
		p.t.Errorf("%s after Close: %v, %v, leader %v", p.name, err, p.State(), p.IsLeader())
	}
}

func TestNeliTakesTurns(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, c *cluster) {
		a := c.begin("a")
		a.mustLead()
		b, other := c.begin("b"), c.begin("c")
		for range 3 {
			b.idle(10 * time.Second)
			other.idle(10 * time.Second)
		}
		if !a.IsLeader() {
			t.Fatal("leadership moved when others joined")
		}
		first := a.Token()
		began := time.Now()
		a.mustClose()
		a.expect(neli.LeaderAcquired{}, neli.LeaderRevoked{})
		next := either(b, other)
		took := time.Since(began)
		t.Log("the next leads ", took, " after the call of Close")
		if took > 5*time.Second || next.Token() <= first {
			t.Errorf("after %v, token %d after %d", took, next.Token(), first)
		}
		if _, err := a.Pulse(time.Second); !errors.Is(err, neli.ErrNonLivePulse) {
			t.Errorf("after Close: %v", err)
		}
		next.expect(neli.LeaderAcquired{})
		b.mustClose()
		other.mustClose()
	})
}

// either pulses both until one leads.
func either(a, b *process) *process {
	for {
		for _, p := range []*process{a, b} {
			if leads, err := p.Pulse(10 * time.Millisecond); err != nil {
				p.t.Fatal(err)
			} else if leads {
				return p
			}
		}
	}
}

// lines are the output of a logger.
type lines struct {
	mu  sync.Mutex
	all bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.String()
}

// follow pulses a process that must not lead, until ok returns true.
func (p *process) follow(what string, ok func() bool) {
	p.t.Helper()
	eventually(p.t, what, func() bool {
		p.idle(10 * time.Millisecond)
		return ok()
	})
}

// TestNeliTrustsOnlyItsOwnRenewals: the leader's own writes are refused. Writes by others to either
// topic neither keep it leading nor let it lead again.
func TestNeliTrustsOnlyItsOwnRenewals(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, c *cluster) {
		a := c.begin("a")
		a.mustLead()
		first := a.Token()
		defer chatter(t, a)()
		refused := c.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Err: kerr.NotEnoughReplicas, Count: -1, When: writes("a")})
		cut := time.Now()
		for a.IsLeader() && time.Since(cut) < patience {
			time.Sleep(10 * time.Millisecond)
		}
		if took := time.Since(cut); took > neli.DefaultHeartbeatTimeout || refused.Hits() == 0 {
			t.Errorf("leads for %v with %d renewals refused", took, refused.Hits())
		}
		for range 60 {
			a.idle(time.Second)
		}
		a.expect(neli.LeaderAcquired{}, neli.LeaderFenced{})
		refused.Remove()
		a.mustLead()
		a.expect(neli.LeaderAcquired{})
		if a.Token() <= first {
			t.Errorf("token %d after %d", a.Token(), first)
		}
		a.mustClose()
	})
}

// writes matches the requests with records of one candidate.
func writes(name string) func(kmsg.Request) bool {
	mark := fmt.Appendf(nil, `"leaderID":%q`, name)
	return func(r kmsg.Request) bool {
		for _, t := range r.(*kmsg.ProduceRequest).Topics {
			for _, p := range t.Partitions {
				if bytes.Contains(p.Records, mark) {
					return true
				}
			}
		}
		return false
	}
}

// chatter writes messages that goNELI takes for heartbeats to both topics, ten times a second.
func chatter(t *testing.T, p *process) (stop func()) {
	client, err := kgo.NewClient(append(p.connection, kgo.RecordPartitioner(kgo.ManualPartitioner()))...)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done, sent := make(chan struct{}), 0
	go func() {
		defer close(done)
		for ; ctx.Err() == nil; time.Sleep(100 * time.Millisecond) {
			for _, topic := range []string{"billing.neli", "billing.neli.log"} {
				if client.ProduceSync(ctx, &kgo.Record{Topic: topic, Value: []byte("1%a")}).FirstErr() == nil {
					sent++
				}
			}
		}
	}()
	return func() {
		cancel()
		<-done
		client.Close()
		if sent < 100 {
			t.Errorf("%d messages of others are no test", sent)
		}
	}
}

func TestNeliCutOff(t *testing.T) {
	for name, c := range map[string]struct {
		precedence *time.Duration
		most       time.Duration
	}{"owner alone": {nil, 16 * time.Second}, "precedence": {neli.Duration(time.Second), 6500 * time.Millisecond}} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, 1, func(_ *testing.T, n *cluster) {
				neliCutOff(&n.site, c.most, func(cfg *neli.Config) { cfg.Precedence = c.precedence })
			})
		})
	}
}

// neliCutOff: a leader that reaches no broker stops within HeartbeatTimeout. It is replaced after
// the session, or after the lease and Precedence. When it reaches them again, it can lead again in
// another term.
func neliCutOff(s *site, most time.Duration, with func(*neli.Config)) {
	t, ways := s.tb, s.relays()
	a := s.begin("a", with, func(cfg *neli.Config) { cfg.ClientOptions = s.through(ways) })
	a.mustLead()
	first, term := a.Token(), a.Term()
	b := s.begin("b", with)
	s.joined(2, b)
	ways.Blackhole()
	took := replacedBy(t, a, b)
	t.Log("the next leads ", took, " after the cut")
	second := b.Token() // 0 if the machine stalled for a lease
	if virtual() && took > most || term.LeaseContext().Err() == nil || second != 0 && second <= first {
		t.Errorf("after %v; a's context is alive, or b's token is %d after %d", took, second, first)
	}
	a.idle(10 * time.Millisecond)
	if virtual() {
		a.idle(time.Minute)
	}
	a.expect(neli.LeaderAcquired{}, neli.LeaderFenced{})
	ways.Heal()
	b.mustClose()
	a.mustLead()
	if a.Token() <= max(first, second) {
		t.Errorf("tokens %d, %d, %d", first, second, a.Token())
	}
	a.mustClose()
}

// joined waits until the group has this many members. It pulses one of them, which would leave
// otherwise.
func (s *site) joined(members int, p *process) {
	s.tb.Helper()
	s.members(members, func() { p.idle(10 * time.Millisecond) })
}

// replacedBy pulses b until it leads in place of a, which was just cut off.
func replacedBy(t testing.TB, a, b *process) (took time.Duration) {
	for cut := time.Now(); ; {
		leads, err := b.Pulse(10 * time.Millisecond)
		took = time.Since(cut)
		switch {
		case err != nil || took > left():
			t.Fatalf("after %v: %v", took, err)
		case leads && (a.IsLeader() || a.Token() != 0):
			t.Fatalf("both lead after %v", took)
		case a.IsLeader() && took > neli.DefaultHeartbeatTimeout:
			t.Fatalf("a leads after %v", took)
		case leads:
			return took
		}
	}
}

// TestNeliWithoutACoordinator: the leader leaves in time, although the group does not answer. Then
// no process leads, because a goNELI process may lead unseen. After the configuration excludes
// goNELI, a process leads.
func TestNeliWithoutACoordinator(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, c *cluster) {
		a := c.begin("a")
		a.mustLead()
		keys := []kmsg.Key{kmsg.Heartbeat, kmsg.JoinGroup, kmsg.SyncGroup}
		gone := c.Fault(kfake.Fault{Keys: keys, Err: kerr.CoordinatorNotAvailable, TopLevel: true, Count: -1})
		time.Sleep(16 * time.Second)
		a.idle(time.Minute)
		a.expect(neli.LeaderAcquired{}, neli.LeaderRevoked{})
		withPrecedence := func(cfg *neli.Config) { cfg.Precedence = neli.Duration(10 * time.Second) }
		b := c.begin("b", withPrecedence)
		b.idle(5 * time.Minute)
		b.mustClose()
		last := c.begin("c", withPrecedence, func(cfg *neli.Config) { cfg.WithoutGoNELI = true })
		last.mustLead()
		gone.Remove()
		last.mustClose()
		a.mustLead()
		a.mustClose()
	})
}

func TestNeliWithoutABroker(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, c *cluster) {
		ways := c.relays()
		refuse(ways)
		a := c.begin("a", func(cfg *neli.Config) { cfg.ClientOptions = c.through(ways) })
		a.idle(time.Minute)
		c.restore(ways)
		a.mustLead()
		a.mustClose()
		refuse(ways)
		c.begin("b", func(cfg *neli.Config) { cfg.ClientOptions = c.through(ways) }).mustClose()
	})
}

// mustFail pulses until there is an error, and once more.
func (p *process) mustFail(within time.Duration) error {
	p.t.Helper()
	began := time.Now()
	leads, err := p.Pulse(patience)
	if took := time.Since(began); leads || err == nil || took > within {
		p.t.Fatalf("%s: %v, %v after %v", p.name, leads, err, took)
	}
	if leads, again := p.Pulse(0); leads || !errors.Is(again, err) {
		p.t.Errorf("then: %v, %v", leads, again)
	}
	p.mustClose()
	p.expect()
	return err
}

func TestNeliFatal(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, c *cluster) {
		// A leader of the same election that another group has nominated.
		log := c.scene("billing.neli.log")
		_ = c.leads(log.open(c.direct()), "billing", tenure.Config{ID: "x", Metadata: group.Metadata("others")})
		err := c.begin("b").mustFail(patience)
		if t.Log(err); !errors.Is(err, group.ErrOtherGroup) {
			t.Errorf("two groups: %v", err)
		}
		// A session that the brokers do not grant.
		defer c.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.JoinGroup}, Err: kerr.InvalidSessionTimeout, TopLevel: true, Count: -1}).Remove()
		err = c.begin("c", func(cfg *neli.Config) { cfg.LeaderGroupID = "third" }).mustFail(patience)
		if t.Log(err); !errors.Is(err, kerr.InvalidSessionTimeout) {
			t.Errorf("%v", err)
		}
	})
}

func TestNeliWaitsForOldMembers(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, c *cluster) {
		if err := c.CreateTopic("billing.neli", 3, nil); err != nil {
			t.Fatal(err)
		}
		neliWaitsForOldMembers(&c.site)
	})
}

// neliWaitsForOldMembers: while an ordinary consumer, as goNELI has, is in the group, no process of
// this package leads, and the log has the reason. When the consumer is gone, one leads.
func neliWaitsForOldMembers(s *site) {
	old := s.goneliJoins()
	var log lines
	a := s.begin("a", func(cfg *neli.Config) {
		cfg.Precedence, cfg.Scribe = neli.Duration(time.Second), slog.New(slog.NewTextHandler(&log, nil))
	})
	a.follow("the log has the reason for waiting", func() bool { return strings.Contains(log.String(), "members of another kind") })
	if virtual() {
		a.idle(time.Minute)
	}
	old.Close()
	a.mustLead()
	a.mustClose()
}

// TestNeliUnsafeTopic: a compacted log is refused, with the reason.
func TestNeliUnsafeTopic(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, c *cluster) {
		if err := c.CreateTopic("billing.neli.log", 1, map[string]string{"cleanup.policy": "compact"}); err != nil {
			t.Fatal(err)
		}
		err := c.begin("a").mustFail(patience)
		if t.Log(err); !strings.Contains(err.Error(), "cleanup.policy") {
			t.Errorf("%v", err)
		}
	})
}

// TestNeliRights: the list in docs/neli.md is enough, and a user without rights gets an error at
// once.
func TestNeliRights(t *testing.T) {
	var rights []kfake.ACL
	grant := func(kind kmsg.ACLResourceType, name string, operations ...kmsg.ACLOperation) {
		for _, o := range operations {
			rights = append(rights, kfake.ACL{Resource: kind, Name: name, Pattern: kmsg.ACLResourcePatternTypeLiteral, Operation: o, Allow: true})
		}
	}
	grant(kmsg.ACLResourceTypeGroup, "billing", kmsg.ACLOperationRead)
	grant(kmsg.ACLResourceTypeTopic, "billing.neli", kmsg.ACLOperationDescribe, kmsg.ACLOperationCreate)
	grant(kmsg.ACLResourceTypeTopic, "billing.neli.log", kmsg.ACLOperationRead, kmsg.ACLOperationWrite, kmsg.ACLOperationDescribe, kmsg.ACLOperationCreate)
	login := func(user string) func(*neli.Config) {
		return func(cfg *neli.Config) {
			for name, value := range map[string]string{
				"security.protocol": "sasl_plaintext", "sasl.mechanisms": "PLAIN", "sasl.username": user, "sasl.password": user,
			} {
				cfg.KafkaConfig[name] = value
			}
		}
	}
	inBubble(t, 1, func(t *testing.T, c *cluster) {
		err := c.begin("a", login("stranger")).mustFail(promptly)
		if t.Log(err); !errors.Is(err, driver.ErrDenied) {
			t.Errorf("%v", err)
		}
		good := c.begin("a", login("candidate"))
		good.mustLead()
		good.mustClose()
	}, kfake.EnableSASL(), kfake.EnableACLs(), kfake.Superuser(plainSASL, "admin", "admin"),
		kfake.User(plainSASL, "stranger", "stranger"), kfake.User(plainSASL, "candidate", "candidate", rights...))
}
