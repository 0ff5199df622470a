package neli

import (
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/timing"
)

func TestDefaults(t *testing.T) {
	given := KafkaConfigMap{}
	c := Config{KafkaConfig: given}
	c.SetDefaults()
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	if len(given) > 0 || c.KafkaConfig["bootstrap.servers"] != "localhost:9092" {
		t.Errorf("given %v, used %v", given, c.KafkaConfig)
	}
	if c.LeaderGroupID != "neli.test" || c.LeaderTopic != "neli.test.neli" || c.Scribe == nil {
		t.Errorf("%+v", c)
	}
	if !strings.Contains(c.Name, fmt.Sprintf("_%d_", os.Getpid())) {
		t.Errorf("named %s", c.Name)
	}
	if *c.PollDuration != time.Millisecond || *c.MinPollInterval != 100*time.Millisecond || *c.HeartbeatTimeout != 5*time.Second {
		t.Errorf("%v", c)
	}
	c = Config{KafkaConfig: KafkaConfigMap{"metadata.broker.list": "here:1"}, LeaderGroupID: "g"}
	if c.SetDefaults(); len(c.KafkaConfig) != 1 || c.LeaderTopic != "g.neli" {
		t.Errorf("%v", c.KafkaConfig)
	}
}

func TestValidateReportsAllProblems(t *testing.T) {
	err := Config{
		KafkaConfig: KafkaConfigMap{"group.id": "g", "no.such": 1, "statistics.interval.ms": 5, "sasl.password": "hidden"},
		LeaderTopic: "topic$", LeaderGroupID: "gr oup", Name: "100%",
		PollDuration: Duration(0), MinPollInterval: Duration(0), HeartbeatTimeout: Duration(time.Second - 1), Precedence: Duration(0),
	}.Validate()
	for _, want := range []string{
		"group.id is set by LeaderGroupID", "no.such is not known", "LeaderTopic", "LeaderGroupID", "Name", "Scribe", "PollDuration",
		"MinPollInterval", "HeartbeatTimeout", "Precedence",
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in %v", want, err)
		}
	}
	if err != nil && (strings.Contains(err.Error(), "statistics") || strings.Contains(err.Error(), "hidden")) {
		t.Errorf("%v", err)
	}
	if _, err := New(Config{HeartbeatTimeout: Duration(11 * time.Minute)}); err == nil {
		t.Error("a session that no broker grants")
	}
	if err := (Config{}).Validate(); err == nil {
		t.Error("valid without defaults")
	}
	if _, err := New(Config{LeaderTopic: strings.Repeat("t", 246)}); err == nil {
		t.Error("a topic whose log has too long a name")
	}
	if _, err := New(Config{}, NopBarrier(), nil); err == nil {
		t.Error("two barriers")
	}
}

func TestStringHidesValues(t *testing.T) {
	c := Config{KafkaConfig: KafkaConfigMap{"sasl.password": "secret"}, LeaderGroupID: "g"}
	if s := c.String(); !strings.Contains(s, "sasl.password") || strings.Contains(s, "secret") || !strings.HasPrefix(s, "Config[") {
		t.Error(s)
	}
}

func TestSanitise(t *testing.T) {
	if s := Sanitise("a b/c.D_e-1"); s != "a_b_c.D_e-1" {
		t.Error(s)
	}
}

func TestProperties(t *testing.T) {
	p, err := sort(KafkaConfigMap{
		"bootstrap.servers": "a:1,b:2", "security.protocol": "sasl_plaintext", "sasl.mechanism": "SCRAM-SHA-256",
		"sasl.username": "user", "sasl.password": "secret", "max.poll.interval.ms": 60000, "heartbeat.interval.ms": "1000",
		"group.instance.id": "one", "acks": 1, "enable.idempotence": true, "go.delivery.reports": false, "debug": "all",
	})
	if err != nil {
		t.Fatal(err)
	}
	if p.silence != time.Minute || p.heartbeat != time.Second || p.instance != "one" || len(p.connection) != 2 || len(p.needless) != 4 {
		t.Errorf("%+v", p)
	}
	for name, value := range map[string]interface{}{
		"max.poll.interval.ms": 0, "heartbeat.interval.ms": "soon", "transactional.id": "t", "group.instance.id": "",
		"default.topic.config": map[string]string{}, "session.timeout.ms": 6000, "client.id": nil,
	} {
		if _, err := sort(KafkaConfigMap{name: value}); err == nil || !strings.Contains(err.Error(), name+" ") {
			t.Errorf("%s = %v: %v", name, value, err)
		}
	}
}

// TestNoPropertyIsInTwoPlaces: each property of goNELI has one treatment.
func TestNoPropertyIsInTwoPlaces(t *testing.T) {
	for _, names := range []map[string]string{own, refused, needless} {
		for name := range names {
			n := 0
			for _, others := range []map[string]string{own, refused, needless} {
				if others[name] != "" {
					n++
				}
			}
			if n != 1 {
				t.Errorf("%s is in %d places", name, n)
			}
		}
	}
}

// TestLeaseKeepsTheTimeout: a leader that is cut off stops by HeartbeatTimeout, and not much
// earlier.
func TestLeaseKeepsTheTimeout(t *testing.T) {
	for _, timeout := range []time.Duration{time.Second, 1234567 * time.Microsecond, 5 * time.Second, 10 * time.Second, time.Minute, 10 * time.Minute} {
		lease := leaseFor(timeout)
		usable := lease - timing.Margin(tenure.Config{Lease: lease})
		if usable > timeout || usable < timeout-2*time.Millisecond || lease%time.Millisecond != 0 || lease > sessions*timeout {
			t.Errorf("%v: a lease of %v, of which %v are used", timeout, lease, usable)
		}
	}
}

// Logger and the types below are a Scribe as a goNELI program has it.
type (
	Logger func(format string, args ...interface{})
	scribe struct{ line *string }
)

func (s scribe) to(level string) Logger {
	return func(format string, args ...interface{}) { *s.line = level + " " + fmt.Sprintf(format, args...) }
}
func (s scribe) T() Logger { return s.to("T") }
func (s scribe) D() Logger { return s.to("D") }
func (s scribe) I() Logger { return s.to("I") }
func (s scribe) W() Logger { return s.to("W") }
func (s scribe) E() Logger { return s.to("E") }

// Scribes is an interface, as libstdgo's Scribe is.
type Scribes interface {
	T() Logger
	D() Logger
	I() Logger
	W() Logger
	E() Logger
}

func TestFromScribe(t *testing.T) {
	var line string
	var s Scribes = scribe{&line}
	log := FromScribe(s).With("name", "n").WithGroup("at")
	for level, want := range map[slog.Level]string{
		slog.LevelDebug - 4: "T", slog.LevelDebug: "D", slog.LevelInfo: "I", slog.LevelWarn: "W", slog.LevelError: "E",
	} {
		log.Log(t.Context(), level, "100% there", "key", 1)
		if line != want+" 100% there name=n at.key=1" {
			t.Errorf("%v: %q", level, line)
		}
	}
}

func TestDeadline(t *testing.T) {
	d, runs := newDeadline(time.Hour), 0
	run := func() { runs++ }
	if !d.Last().Equal(time.Unix(0, 0)) || !d.Expired() || d.Remaining() >= 0 || !d.TryRun(run) || d.TryRun(run) || runs != 1 {
		t.Errorf("%d runs, last %v", runs, d.Last())
	}
	if d.Expired() || d.Remaining() <= 0 || d.Elapsed() > time.Minute {
		t.Errorf("%v remain", d.Remaining())
	}
	d.Move(time.Now().Add(-2 * time.Hour))
	if !d.TryRun(run) {
		t.Error("does not run after it was moved")
	}
}
