package kafka

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/clock"
	"github.com/tenure-go/tenure/compat/neli"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/kafkalog"
	"github.com/tenure-go/tenure/driver/kafkalog/group"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// TestNeliTrustsOnlyItsOwnRenewals: the leader's own writes are refused. Writes by others to either
// topic neither keep it leading nor let it lead again.
func TestNeliTrustsOnlyItsOwnRenewals(t *testing.T) {
	inTheBubble(t, func(t *testing.T, c *cluster, begin beginning) {
		a := begin("a")
		a.mustLead(patience)
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
		a.mustLead(patience)
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
			for _, topic := range []string{"topic", "topic.log"} {
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

// wire is a network that can be cut.
type wire struct {
	dial dialing
	mu   sync.Mutex
	cut  bool
	all  []net.Conn
}

var errCut = errors.New("cut")

func (w *wire) Dial(ctx context.Context, network, host string) (net.Conn, error) {
	conn, err := w.dial(ctx, network, host)
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case err != nil:
		return nil, err
	case w.cut:
		_ = conn.Close()
		return nil, &net.OpError{Op: "dial", Err: errCut}
	}
	w.all = append(w.all, conn)
	return conn, nil
}

func (w *wire) Cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cut = true
	for _, c := range w.all {
		_ = c.Close()
	}
	w.all = nil
}

func (w *wire) Mend() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cut = false
}

// TestNeliCutOff: a leader that reaches no broker stops within HeartbeatTimeout. It is replaced
// after the session, or after the lease and Precedence. When it reaches them again, it can lead
// again in another term.
func TestNeliCutOff(t *testing.T) {
	for name, c := range map[string]struct {
		precedence *time.Duration
		most       time.Duration
	}{"owner alone": {nil, 16 * time.Second}, "precedence": {neli.Duration(time.Second), 6500 * time.Millisecond}} {
		t.Run(name, func(t *testing.T) {
			inTheBubble(t, func(t *testing.T, n *cluster, begin beginning) {
				cutOff(t, n, begin, c.most, func(cfg *neli.Config) { cfg.Precedence = c.precedence })
			})
		})
	}
}

func cutOff(t *testing.T, c *cluster, begin beginning, most time.Duration, with func(*neli.Config)) {
	w := &wire{dial: c.dial}
	a := begin("a", with, func(cfg *neli.Config) { cfg.ClientOptions = c.direct(kgo.Dialer(w.Dial)) })
	a.mustLead(patience)
	first, term := a.Token(), a.Term()
	b := begin("b", with)
	b.idle(10 * time.Second)
	w.Cut()
	took := replacedBy(t, a, b)
	t.Log("the next leads ", took, " after the cut")
	if took > most || term.Context().Err() == nil || b.Token() <= first {
		t.Errorf("after %v; a's context is alive, or b's token is %d after %d", took, b.Token(), first)
	}
	a.idle(time.Minute)
	a.expect(neli.LeaderAcquired{}, neli.LeaderFenced{})
	w.Mend()
	b.mustClose()
	a.mustLead(patience)
	a.mustClose()
}

// replacedBy pulses b until it leads in place of a, which was just cut off.
func replacedBy(t *testing.T, a, b *process) (took time.Duration) {
	for cut := time.Now(); ; {
		leads, err := b.Pulse(10 * time.Millisecond)
		took = time.Since(cut)
		switch {
		case err != nil || took > patience:
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
	inTheBubble(t, func(t *testing.T, c *cluster, begin beginning) {
		a := begin("a")
		a.mustLead(patience)
		keys := []kmsg.Key{kmsg.Heartbeat, kmsg.JoinGroup, kmsg.SyncGroup}
		gone := c.Fault(kfake.Fault{Keys: keys, Err: kerr.CoordinatorNotAvailable, TopLevel: true, Count: -1})
		time.Sleep(16 * time.Second)
		a.idle(time.Minute)
		a.expect(neli.LeaderAcquired{}, neli.LeaderRevoked{})
		withPrecedence := func(cfg *neli.Config) { cfg.Precedence = neli.Duration(10 * time.Second) }
		b := begin("b", withPrecedence)
		b.idle(5 * time.Minute)
		b.mustClose()
		last := begin("c", withPrecedence, func(cfg *neli.Config) { cfg.WithoutGoNELI = true })
		last.mustLead(time.Minute)
		gone.Remove()
		last.mustClose()
		a.mustLead(patience)
		a.mustClose()
	})
}

func TestNeliWithoutABroker(t *testing.T) {
	inTheBubble(t, func(t *testing.T, c *cluster, begin beginning) {
		w := &wire{dial: c.dial}
		w.Cut()
		a := begin("a", func(cfg *neli.Config) { cfg.ClientOptions = c.direct(kgo.Dialer(w.Dial)) })
		a.idle(time.Minute)
		w.Mend()
		a.mustLead(patience)
		a.mustClose()
		w.Cut()
		begin("b", func(cfg *neli.Config) { cfg.ClientOptions = c.direct(kgo.Dialer(w.Dial)) }).mustClose()
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

func mustOpen(t *testing.T, c *cluster, topic string) *kafkalog.Store {
	t.Helper()
	s, err := kafkalog.Open(within(t), c.direct(), topic)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestNeliFatal(t *testing.T) {
	inTheBubble(t, func(t *testing.T, c *cluster, begin beginning) {
		// A leader of the same election that another group has nominated.
		store := mustOpen(t, c, "topic.log")
		e, err := tenure.New(store, "group", tenure.Config{ID: "x", Metadata: group.Metadata("others"), Clock: clock.Standard{}})
		if err != nil {
			t.Fatal(err)
		}
		term, err := e.Campaign(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		err = begin("b").mustFail(patience)
		if t.Log(err); !errors.Is(err, group.ErrOtherGroup) {
			t.Errorf("two groups: %v", err)
		}
		_ = term.Resign(t.Context())
		_ = store.Close()
		// A session that the brokers do not grant.
		defer c.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.JoinGroup}, Err: kerr.InvalidSessionTimeout, TopLevel: true, Count: -1}).Remove()
		err = begin("c", func(cfg *neli.Config) { cfg.LeaderGroupID = "third" }).mustFail(patience)
		if t.Log(err); !errors.Is(err, kerr.InvalidSessionTimeout) {
			t.Errorf("%v", err)
		}
	})
}

// TestNeliWaitsForOldMembers: while an ordinary consumer, as goNELI has, is in the group, no
// process of this package leads, and the log has the reason. When the consumer is gone, one leads.
func TestNeliWaitsForOldMembers(t *testing.T) {
	inTheBubble(t, func(t *testing.T, c *cluster, begin beginning) {
		if err := c.CreateTopic("topic", 3, nil); err != nil {
			t.Fatal(err)
		}
		old, err := kgo.NewClient(c.direct(kgo.ConsumerGroup("group"), kgo.ConsumeTopics("topic"),
			kgo.Balancers(kgo.RangeBalancer()))...)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(patience)
		var log bytes.Buffer
		a := begin("a", func(cfg *neli.Config) {
			cfg.Scribe = slog.New(slog.NewTextHandler(&log, nil))
			cfg.Precedence = neli.Duration(time.Second)
		})
		a.idle(time.Minute)
		old.Close()
		a.mustLead(patience)
		a.mustClose()
		if !strings.Contains(log.String(), "members of another kind") {
			t.Errorf("the log has only %s", &log)
		}
	})
}

// TestNeliUnsafeTopic: a compacted log is refused, with the reason.
func TestNeliUnsafeTopic(t *testing.T) {
	inTheBubble(t, func(t *testing.T, c *cluster, begin beginning) {
		if err := c.CreateTopic("topic.log", 1, map[string]string{"cleanup.policy": "compact"}); err != nil {
			t.Fatal(err)
		}
		err := begin("a").mustFail(patience)
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
	grant(kmsg.ACLResourceTypeGroup, "group", kmsg.ACLOperationRead)
	grant(kmsg.ACLResourceTypeTopic, "topic", kmsg.ACLOperationDescribe, kmsg.ACLOperationCreate)
	grant(kmsg.ACLResourceTypeTopic, "topic.log", kmsg.ACLOperationRead, kmsg.ACLOperationWrite, kmsg.ACLOperationDescribe, kmsg.ACLOperationCreate)
	login := func(user string) func(*neli.Config) {
		return func(cfg *neli.Config) {
			for name, value := range map[string]string{
				"security.protocol": "sasl_plaintext", "sasl.mechanisms": "PLAIN", "sasl.username": user, "sasl.password": user,
			} {
				cfg.KafkaConfig[name] = value
			}
		}
	}
	inTheBubble(t, func(t *testing.T, _ *cluster, begin beginning) {
		err := begin("a", login("stranger")).mustFail(promptly)
		if t.Log(err); !errors.Is(err, driver.ErrDenied) {
			t.Errorf("%v", err)
		}
		good := begin("a", login("candidate"))
		good.mustLead(patience)
		good.mustClose()
	}, kfake.EnableSASL(), kfake.EnableACLs(), kfake.Superuser(plainSASL, "admin", "admin"),
		kfake.User(plainSASL, "stranger", "stranger"), kfake.User(plainSASL, "candidate", "candidate", rights...))
}
