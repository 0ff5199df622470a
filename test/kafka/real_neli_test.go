//go:build integration && unix

package kafka

import (
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tenure-go/tenure/compat/neli"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/kafkalog/group"
	"github.com/tenure-go/tenure/internal/test/wait"
	"github.com/tenure-go/tenure/test/internal/kafkad/kafkad"
	"github.com/tenure-go/tenure/test/internal/machine"
	"github.com/twmb/franz-go/pkg/kgo"
)

// neliOnReal has its own group, with its topics.
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

// joined waits until the group has this many members. It pulses one of them, which would leave
// otherwise.
func (n *neliOnReal) joined(members int, p *process) {
	n.tb.Helper()
	pulse := func() { _, _ = p.Pulse(10 * time.Millisecond) }
	(&guild{n.brokers, group.Config{Name: n.group}}).members(members, pulse)
}

// follow pulses a process that must not lead, until ok returns true.
func (p *process) follow(what string, ok func() bool) {
	p.t.Helper()
	wait.Until(p.t, what, func() bool {
		p.idle(10 * time.Millisecond)
		return ok()
	})
}

// got reports whether the process got the event.
func (p *process) got(e neli.Event) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Contains(p.diary, e.String())
}

// TestRealNeliEnds measures how soon the next leader comes after a leader goes.
func TestRealNeliEnds(t *testing.T) {
	soak(t)
	t.Parallel()
	for name, leave := range map[string]func(*neliCommand){
		"in order":   func(c *neliCommand) { c.end() },
		"by a crash": func(c *neliCommand) { _ = c.cmd.Process.Kill() },
	} {
		t.Run(name, func(t *testing.T) {
			n := startNeli(t)
			leader := n.run()
			first := leader.mustSay()
			b := n.begin("b")
			n.joined(2, b)
			began := time.Now()
			leave(leader)
			b.mustLeadInTheEnd()
			t.Logf("the next leads %v later", time.Since(began).Round(time.Millisecond))
			if b.Token() <= first {
				t.Errorf("tokens %d, then %d", first, b.Token())
			}
			b.mustClose()
		})
	}
}

// TestRealNeliFrozen: a leader that was stopped for more than a session does nothing as a leader
// when it continues.
func TestRealNeliFrozen(t *testing.T) {
	soak(t)
	t.Parallel()
	n := startNeli(t)
	leader := n.run()
	first := leader.mustSay()
	b := n.begin("b")
	n.joined(2, b)
	if err := machine.Pause(leader.cmd.Process.Pid); err != nil {
		t.Fatal(err)
	}
	leader.output()
	b.mustLeadInTheEnd()
	if err := machine.Resume(leader.cmd.Process.Pid); err != nil {
		t.Fatal(err)
	}
	output := ""
	wait.Until(t, "the frozen one is fenced", func() bool {
		output += leader.output()
		return strings.Contains(output, "LeaderFenced")
	})
	if before, _, _ := strings.Cut(output, "LeaderFenced"); strings.Contains(before, "leading") {
		t.Errorf("after it was stopped: %s", output)
	}
	second := b.Token()
	b.mustClose()
	if third := leader.mustSay(); second != 0 && (second <= first || third <= second) {
		t.Errorf("tokens %d, %d, %d", first, second, third)
	}
	leader.end()
}

// TestRealNeliFenced: a leader that is cut off silently stops within HeartbeatTimeout, before the
// next one leads. It leads again in another term.
func TestRealNeliFenced(t *testing.T) {
	soak(t)
	t.Parallel()
	n := startNeli(t)
	connection, relays := n.overRelays()
	a := n.begin("a", func(cfg *neli.Config) { cfg.ClientOptions = connection })
	a.mustLeadInTheEnd()
	first, term := a.Token(), a.Term()
	b := n.begin("b")
	n.joined(2, b)
	for _, r := range relays {
		r.Blackhole()
	}
	cut, fenced := time.Now(), time.Duration(0)
	// Before the request: an answer may come late.
	for asked := fenced; a.IsLeader(); asked = time.Since(cut) {
		if fenced = asked; fenced > neli.DefaultHeartbeatTimeout {
			t.Fatalf("leads %v after the cut", fenced)
		}
		time.Sleep(10 * time.Millisecond)
	}
	if a.Token() != 0 {
		t.Errorf("fenced, with token %d", a.Token())
	}
	<-term.Context().Done()
	b.mustLeadInTheEnd()
	t.Logf("fenced %v after the cut, and the next leads after %v", fenced.Round(time.Millisecond), time.Since(cut).Round(time.Millisecond))
	for _, r := range relays {
		r.Heal()
	}
	second := b.Token()
	wait.Until(t, "it gets the event", func() bool {
		_, err := a.Pulse(10 * time.Millisecond)
		return a.got(neli.LeaderFenced{}) || err != nil
	})
	b.mustClose()
	a.mustLeadInTheEnd()
	if second != 0 && (second <= first || a.Token() <= second) {
		t.Errorf("tokens %d, %d, %d", first, second, a.Token())
	}
	a.mustClose()
}

// TestRealNeliWaitsForOldMembers: members of another kind keep those of this package out of the
// group until they are gone.
func TestRealNeliWaitsForOldMembers(t *testing.T) {
	t.Parallel()
	n := startNeli(t)
	n.CreateTopic(t, n.group+".neli", nil)
	old := n.client(kgo.ConsumerGroup(n.group), kgo.ConsumeTopics(n.group+".neli"), kgo.Balancers(kgo.RangeBalancer()))
	wait.Until(t, "an ordinary consumer", func() bool { _, generation := old.GroupMetadata(); return generation > 0 })
	var log lines
	a := n.begin("a", func(cfg *neli.Config) {
		cfg.Precedence, cfg.Scribe = neli.Duration(time.Second), slog.New(slog.NewTextHandler(&log, nil))
	})
	a.follow("the log has the reason for waiting", func() bool { return strings.Contains(log.String(), "members of another kind") })
	old.Close()
	a.mustLeadInTheEnd()
	a.mustClose()
}

// TestRealNeliWrongPassword: a wrong password is a fatal error, reported at once.
func TestRealNeliWrongPassword(t *testing.T) {
	t.Parallel()
	n := startNeli(t)
	err := n.begin("a", func(cfg *neli.Config) {
		cfg.KafkaConfig = neli.KafkaConfigMap{
			"bootstrap.servers": strings.Join(n.SASLSeeds(), ","), "security.protocol": "sasl_plaintext",
			"sasl.mechanism": "PLAIN", "sasl.username": kafkad.Candidate, "sasl.password": "wrong",
		}
	}).mustFail(wait.Left())
	t.Log(err)
	if !strings.Contains(err.Error(), "SASL_AUTHENTICATION_FAILED") || !errors.Is(err, driver.ErrDenied) {
		t.Error(err)
	}
}
