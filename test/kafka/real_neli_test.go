//go:build integration && unix

package kafka

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tenure-go/tenure/compat/neli"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/kafkalog/group"
	"github.com/tenure-go/tenure/internal/crew"
	"github.com/tenure-go/tenure/internal/test/wait"
	"github.com/tenure-go/tenure/test/internal/kafkad/kafkad"
	"github.com/tenure-go/tenure/test/internal/machine"
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
	party{&n.site, group.Config{Name: n.group}}.members(members, pulse)
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
	if err := crew.Freeze(leader.cmd.Process.Pid); err != nil {
		t.Fatal(err)
	}
	leader.output()
	b.mustLeadInTheEnd()
	if err := crew.Continue(leader.cmd.Process.Pid); err != nil {
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
	neliWaitsForOldMembers(n.goneliJoins(n.group, n.group+".neli"), n.begin)
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

// neliCommand is package neli's command, run as a user runs it.
type neliCommand struct {
	tb  testing.TB
	cmd *exec.Cmd
	lines
}

func buildNeli(t testing.TB) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "neli")
	build := exec.Command("go", "build", "-ldflags=-s -w", "-o", path, "github.com/tenure-go/tenure/compat/neli/cmd/neli")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return path
}

func runNeli(t testing.TB, path, brokers, group, topic string) *neliCommand {
	t.Helper()
	n := &neliCommand{tb: t, cmd: exec.Command(path, "-kafka", brokers, "-group", group, "-topic", topic)}
	n.cmd.Stdout, n.cmd.Stderr = n, n
	if err := n.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = n.cmd.Process.Kill() })
	return n
}

// mustSay waits until the command leads, and returns the token that it printed.
func (n *neliCommand) mustSay() (token uint64) {
	n.tb.Helper()
	all := ""
	eventually(n.tb, "the command leads", func() bool {
		all += n.output()
		_, after, found := strings.Cut(all, "leading, with token ")
		if !found || !strings.Contains(after, "\n") {
			return false
		}
		var err error
		if token, err = strconv.ParseUint(strings.Fields(after)[0], 10, 64); err != nil {
			n.tb.Fatal(err)
		}
		return true
	})
	return token
}

// end stops it as a service manager does.
func (n *neliCommand) end() {
	n.tb.Helper()
	if err := n.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		n.tb.Fatal(err)
	}
	if err := n.cmd.Wait(); err != nil {
		n.tb.Errorf("the command ends with %v: %s", err, n.output())
	}
}

// TestNeliCommand checks its flags and a graceful end, and that the next one leads then.
func TestNeliCommand(t *testing.T) {
	t.Parallel()
	c := start(t)
	n := runNeli(t, buildNeli(t), c.ListenAddrs()[0], "group", "topic")
	first := n.mustSay()
	b := begin(t, "b", c.ListenAddrs()[0])
	n.end()
	b.mustLeadInTheEnd()
	if b.Token() <= first {
		t.Errorf("tokens %d, then %d", first, b.Token())
	}
	b.mustClose()
	if out, err := exec.Command(n.cmd.Path, "-no-such-flag").CombinedOutput(); err == nil || !bytes.Contains(out, []byte("bootstrap")) {
		t.Errorf("%v: %s", err, out)
	}
}

// These variables make TestRealBesideGoNELI a process of package neli, with the brokers and the
// group, or the worker of `tenure run`.
const (
	besideSeeds  = "TENURE_TEST_BESIDE"
	besideGroup  = "TENURE_TEST_BESIDE_GROUP"
	besideWorker = "TENURE_TEST_BESIDE_WORKER"
)

const (
	// besideSession is the shortest session that brokers allow.
	besideSession = 6 * time.Second
	// goneliLeads is how long the goNELI process leads: several leases and times of precedence.
	goneliLeads = 15 * time.Second
)

// TestRealBesideGoNELI: the only member of this project is stopped for longer than its session. The
// brokers admit a goNELI process in its place, which leads without the log. When the member
// continues, it must not lead while the goNELI process does.
func TestRealBesideGoNELI(t *testing.T) {
	if seeds := os.Getenv(besideSeeds); seeds != "" {
		beBesideGoNELI(t, seeds, os.Getenv(besideGroup))
		return
	}
	if os.Getenv(besideWorker) != "" {
		workBesideGoNELI()
		return
	}
	soak(t)
	for name, command := range map[string]func(*neliOnReal) *exec.Cmd{
		"package neli": (*neliOnReal).member, "tenure run": (*neliOnReal).tenureRun,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := startNeli(t)
			n.stopBesideGoNELI(command(n))
		})
	}
}

// beBesideGoNELI prints a line each time it may act. It may claim without a nomination.
func beBesideGoNELI(t *testing.T, seeds, name string) {
	p := begin(t, "a", seeds, func(cfg *neli.Config) {
		delete(cfg.KafkaConfig, "heartbeat.interval.ms")
		cfg.LeaderGroupID, cfg.LeaderTopic = name, ""
		cfg.HeartbeatTimeout, cfg.Precedence = neli.Duration(besideSession/3), neli.Duration(time.Second)
		cfg.Scribe = slog.New(slog.NewTextHandler(os.Stdout, nil))
	})
	for ; ; time.Sleep(5 * time.Millisecond) {
		asked := machine.Now()
		if p.IsLeader() {
			fmt.Println("acts", p.Token(), asked)
		}
		if _, err := p.Pulse(5 * time.Millisecond); err != nil {
			t.Fatal(err)
		}
	}
}

// workBesideGoNELI is the command of `tenure run`.
func workBesideGoNELI() {
	for ; ; time.Sleep(5 * time.Millisecond) {
		fmt.Println("acts", os.Getenv("TENURE_TOKEN"), machine.Now())
	}
}

func (n *neliOnReal) member() *exec.Cmd {
	return n.again(os.Args[:1], besideSeeds+"="+strings.Join(n.Seeds(), ","), besideGroup+"="+n.group)
}

func (n *neliOnReal) tenureRun() *exec.Cmd {
	n.tb.Helper()
	path := filepath.Join(n.tb.TempDir(), "tenure")
	build := exec.Command("go", "build", "-ldflags=-s -w", "-o", path, "github.com/tenure-go/tenure/cmd/tenure")
	if out, err := build.CombinedOutput(); err != nil {
		n.tb.Fatalf("%v: %s", err, out)
	}
	store := fmt.Sprintf("kafka://%s/%s?mode=neli&group=%s&session=%v", strings.Join(n.Seeds(), ","), n.topic, n.group, besideSession)
	return n.again([]string{path, "run", "--store", store, "--create", "--election", "billing", "--id", "a",
		"--lease", (besideSession / 3).String(), "--", os.Args[0]}, besideWorker+"=true")
}

// again returns a command that runs this test once more in another role.
func (n *neliOnReal) again(args []string, env ...string) *exec.Cmd {
	cmd := exec.Command(args[0], append(args[1:], "-test.run=^TestRealBesideGoNELI$")...)
	cmd.Env = append(os.Environ(), env...)
	return cmd
}

func (n *neliOnReal) stopBesideGoNELI(cmd *exec.Cmd) {
	n.tb.Helper()
	p := &actor{neliCommand{tb: n.tb, cmd: cmd}}
	p.start()
	first := p.acts(0)
	n.must(crew.Freeze(cmd.Process.Pid))
	old := n.goneliJoins(n.group, n.group+".neli")
	began := machine.Now()
	n.must(crew.Continue(cmd.Process.Pid))
	time.Sleep(goneliLeads)
	ended := machine.Now()
	old.Close()
	switch a := p.acts(began); {
	case a.at < ended:
		n.tb.Errorf("it acts with token %d %v after goNELI began to lead, and %v before goNELI ends", a.token,
			time.Duration(a.at-began), time.Duration(ended-a.at))
	case a.token <= first.token:
		n.tb.Errorf("token %d after %d", a.token, first.token)
	}
}

// actor is a process that prints when it may act.
type actor struct{ neliCommand }

// act is one such line.
type act struct {
	token uint64
	at    int64
}

func (p *actor) start() {
	p.tb.Helper()
	p.cmd.Stdout, p.cmd.Stderr = p, p
	crew.Separate(p.cmd)
	if err := p.cmd.Start(); err != nil {
		p.tb.Fatal(err)
	}
	p.tb.Cleanup(func() {
		_ = p.cmd.Process.Signal(syscall.SIGCONT)
		_ = p.cmd.Process.Kill()
		_ = p.cmd.Wait()
	})
}

// acts waits for the first act after a time, and returns it.
func (p *actor) acts(after int64) (found act) {
	p.tb.Helper()
	wait.Until(p.tb, "it acts", func() bool {
		for line := range strings.Lines(p.String()) {
			var a act
			if n, _ := fmt.Sscanf(line, "acts %d %d\n", &a.token, &a.at); n == 2 && a.at > after {
				found = a
				return true
			}
		}
		return false
	})
	return found
}
