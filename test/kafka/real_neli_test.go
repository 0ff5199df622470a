//go:build integration && unix

package kafka

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/kafkalog/neli"
	"github.com/tenure-go/tenure/test/internal/kafkad/kafkad"
	"github.com/tenure-go/tenure/test/internal/machine"
	"github.com/twmb/franz-go/pkg/kgo"
)

// neliOnReal has a group of the test's own, with its topics.
type neliOnReal struct {
	*brokers
	group string
}

func startNeli(t testing.TB) *neliOnReal {
	t.Helper()
	n := &neliOnReal{brokers: startReal(t)}
	n.group = n.topic
	n.topic = n.group + ".neli.log"
	return n
}

func (n *neliOnReal) begin(name string, change ...func(*neli.Config)) *process {
	n.tb.Helper()
	mine := func(cfg *neli.Config) {
		cfg.LeaderGroupID, cfg.LeaderTopic = n.group, ""
		delete(cfg.KafkaConfig, "heartbeat.interval.ms")
	}
	return begin(n.tb, name, strings.Join(n.Seeds(), ","), append([]func(*neli.Config){mine}, change...)...)
}

// run starts the command.
func (n *neliOnReal) run() *neliCommand {
	n.tb.Helper()
	return runNeli(n.tb, buildNeli(n.tb), strings.Join(n.Seeds(), ","), n.group, n.group+".neli")
}

// session is how long the coordinator waits for a member, and for what comes then.
const (
	session  = 3 * neli.DefaultHeartbeatTimeout
	replaced = session + 15*time.Second
)

// TestRealNeliEnds: how a leader goes, and how soon the next one comes.
func TestRealNeliEnds(t *testing.T) {
	t.Parallel()
	withSignals(t)
	for _, c := range []struct {
		name        string
		leave       func(*neliCommand)
		least, most time.Duration
	}{
		{"in order", func(c *neliCommand) { c.end() }, 0, 10 * time.Second},
		{"by a crash", func(c *neliCommand) { _ = c.cmd.Process.Kill() }, session / 2, replaced},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := startNeli(t)
			leader := n.run()
			first := leader.mustSay(patience)
			b := n.begin("b")
			b.idle(5 * time.Second)
			began := time.Now()
			c.leave(leader)
			b.mustLead(replaced)
			took := time.Since(began)
			t.Logf("the next leads %v later", took.Round(time.Millisecond))
			if took < c.least || took > c.most || b.Token() <= first {
				t.Errorf("after %v, tokens %d, then %d", took, first, b.Token())
			}
			b.mustClose()
		})
	}
}

// TestRealNeliFrozen: a leader that was stopped for two sessions does not do anything as a leader when it goes on.
func TestRealNeliFrozen(t *testing.T) {
	t.Parallel()
	withSignals(t)
	n := startNeli(t)
	leader := n.run()
	leader.mustSay(patience)
	b := n.begin("b")
	b.idle(5 * time.Second)
	if err := machine.Pause(leader.cmd.Process.Pid); err != nil {
		t.Skip(err)
	}
	leader.said()
	b.mustLead(replaced)
	pause(n.context(), session)
	if err := machine.Resume(leader.cmd.Process.Pid); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(5 * time.Second); time.Now().Before(end); {
		if leads, err := b.Pulse(10 * time.Millisecond); !leads || err != nil {
			t.Fatalf("b leads: %v, %v", leads, err)
		}
	}
	if said := leader.said(); strings.Contains(said, "leading") || !strings.Contains(said, "LeaderFenced") {
		t.Errorf("after it was stopped: %s", said)
	}
	b.mustClose()
	leader.mustSay(replaced)
	leader.end()
}

// TestRealNeliFenced: a leader that is cut off without a word stops within HeartbeatTimeout, before the next one leads, and leads
// again by another term.
func TestRealNeliFenced(t *testing.T) {
	t.Parallel()
	n := startNeli(t)
	connection, relays := n.overRelays()
	a := n.begin("a", func(cfg *neli.Config) { cfg.ClientOptions = connection })
	a.mustLead(patience)
	first, term := a.Token(), a.Term()
	b := n.begin("b")
	b.idle(5 * time.Second)
	for _, r := range relays {
		r.Blackhole()
	}
	cut, fenced := time.Now(), time.Duration(0)
	for asked := fenced; a.IsLeader() && fenced < patience; asked = time.Since(cut) { // before the question: an answer may come late
		fenced = asked
		time.Sleep(10 * time.Millisecond)
	}
	if fenced > neli.DefaultHeartbeatTimeout || a.Token() != 0 {
		t.Fatalf("leads %v after the cut, with token %d", fenced, a.Token())
	}
	<-term.Context().Done()
	b.mustLead(replaced)
	t.Logf("fenced %v after the cut, and the next leads after %v", fenced.Round(time.Millisecond), time.Since(cut).Round(time.Millisecond))
	for _, r := range relays {
		r.Heal()
	}
	a.idle(10 * time.Second)
	a.expect(neli.LeaderAcquired{}, neli.LeaderFenced{})
	second := b.Token()
	b.mustClose()
	a.mustLead(replaced)
	if second <= first || a.Token() <= second {
		t.Errorf("tokens %d, %d, %d", first, second, a.Token())
	}
	a.mustClose()
}

// TestRealNeliWaitsForOldOnes: members of another kind keep those of this package out of the group until they are gone.
func TestRealNeliWaitsForOldOnes(t *testing.T) {
	t.Parallel()
	n := startNeli(t)
	n.CreateTopic(t, n.group+".neli", nil)
	old := n.client(kgo.ConsumerGroup(n.group), kgo.ConsumeTopics(n.group+".neli"), kgo.Balancers(kgo.RangeBalancer()))
	eventually(t, "an ordinary consumer", func() bool { _, generation := old.GroupMetadata(); return generation > 0 })
	a := n.begin("a", func(cfg *neli.Config) { cfg.Precedence = neli.Duration(time.Second) })
	a.idle(10 * time.Second)
	old.Close()
	a.mustLead(patience)
	a.mustClose()
}

// TestRealNeliWrongPassword is fatal, and said at once.
func TestRealNeliWrongPassword(t *testing.T) {
	t.Parallel()
	n := startNeli(t)
	var err error
	prompt(t, soon, func() {
		err = n.begin("a", func(cfg *neli.Config) {
			cfg.KafkaConfig = neli.KafkaConfigMap{
				"bootstrap.servers": strings.Join(n.SASLSeeds(), ","), "security.protocol": "sasl_plaintext",
				"sasl.mechanism": "PLAIN", "sasl.username": kafkad.Candidate, "sasl.password": "wrong",
			}
		}).mustFail(patience)
	})
	t.Log(err)
	if !strings.Contains(err.Error(), "SASL_AUTHENTICATION_FAILED") || !errors.Is(err, driver.ErrDenied) {
		t.Error(err)
	}
}
