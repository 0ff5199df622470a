//go:build integration && unix

package kafka

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tenure-go/tenure/compat/neli"
	"github.com/tenure-go/tenure/internal/test/wait"
	"github.com/tenure-go/tenure/test/internal/command"
	"github.com/tenure-go/tenure/test/internal/machine"
)

// run starts the command.
func (b *brokers) run() *neliCommand {
	b.tb.Helper()
	return runNeli(&b.site, build(b.tb, "compat/neli/cmd/neli"))
}

// TestRealNeliFrozen: a leader that was stopped for more than a session does nothing as a leader
// when it continues.
func TestRealNeliFrozen(t *testing.T) {
	soak(t)
	t.Parallel()
	n := startReal(t)
	leader := n.run()
	first := leader.mustSay()
	b := n.begin("b")
	n.joined(2, b)
	if err := leader.Freeze(); err != nil {
		t.Fatal(err)
	}
	leader.output()
	b.mustLead()
	if err := leader.Continue(); err != nil {
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

func TestRealNeliCutOff(t *testing.T) {
	soak(t)
	t.Parallel()
	neliCutOff(&startReal(t).site, 0, func(*neli.Config) {})
}

// TestRealNeliWaitsForOldMembers: members of another kind keep those of this package out of the
// group until they are gone.
func TestRealNeliWaitsForOldMembers(t *testing.T) {
	t.Parallel()
	n := startReal(t)
	n.CreateTopic(t, n.group.Name+".neli", nil)
	neliWaitsForOldMembers(&n.site)
}

// neliCommand is package neli's command, run as a user runs it.
type neliCommand struct {
	*command.Process
	tb   testing.TB
	seen int // the bytes that output has returned
}

// output returns the output since its last call.
func (n *neliCommand) output() string {
	said := n.Says()[n.seen:]
	n.seen += len(said)
	return said
}

// build builds a command of this project.
func build(t testing.TB, name string) string {
	t.Helper()
	path, err := command.BuildIn(t.Context(), t.TempDir(), "github.com/tenure-go/tenure/"+name)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func runNeli(s *site, path string) *neliCommand {
	args := []string{"-kafka", strings.Join(s.seeds, ","), "-group", s.group.Name, "-topic", s.group.Name + ".neli"}
	return &neliCommand{Process: command.Start(s.tb, path, args...), tb: s.tb}
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
	if err := errors.Join(n.Stop(), n.Wait()); err != nil {
		n.tb.Errorf("the command ends with %v: %s", err, n.output())
	}
}

// TestNeliCommand checks its flags and a graceful end, and that the next one leads then.
func TestNeliCommand(t *testing.T) {
	t.Parallel()
	c := start(t)
	path := build(t, "compat/neli/cmd/neli")
	n := runNeli(&c.site, path)
	first := n.mustSay()
	b := c.begin("b")
	n.end()
	b.mustLead()
	if b.Token() <= first {
		t.Errorf("tokens %d, then %d", first, b.Token())
	}
	b.mustClose()
	if out, err := exec.Command(path, "-no-such-flag").CombinedOutput(); err == nil || !bytes.Contains(out, []byte("bootstrap")) {
		t.Errorf("%v: %s", err, out)
	}
}

// These variables make a test a process of its own: the brokers, the group and the role.
const (
	roleSeeds = "TENURE_TEST_SEEDS"
	roleGroup = "TENURE_TEST_GROUP"
	role      = "TENURE_TEST_ROLE"
)

// again runs this test once more in another role. The arguments come before the path of the test's
// program.
func (s *site) again(t *testing.T, as string, args ...string) *neliCommand {
	env := []string{roleSeeds + "=" + strings.Join(s.seeds, ","), roleGroup + "=" + s.group.Name, role + "=" + as}
	args = append(args, os.Args[0], "-test.run=^"+t.Name()+"$")
	return &neliCommand{Process: command.Start(t, "env", append(env, args...)...), tb: t}
}

// roleSite is the site of such a process.
func roleSite(t *testing.T) *site {
	s := newSite(t, strings.Split(os.Getenv(roleSeeds), ","), "", os.Getenv(roleGroup), nil)
	return &s
}

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
	switch os.Getenv(role) {
	case "member":
		beBesideGoNELI(roleSite(t))
		return
	case "worker": // of `tenure run`
		for ; ; time.Sleep(5 * time.Millisecond) {
			fmt.Println("acts", os.Getenv("TENURE_TOKEN"), machine.Now())
		}
	}
	soak(t)
	t.Parallel()
	for _, command := range []func(*brokers, *testing.T) *neliCommand{(*brokers).member, (*brokers).tenureRun} {
		n := startReal(t)
		n.stopBesideGoNELI(command(n, t))
	}
}

// beBesideGoNELI prints a line each time it may act. It may claim without a nomination.
func beBesideGoNELI(s *site) {
	p := s.begin("a", func(cfg *neli.Config) {
		cfg.HeartbeatTimeout, cfg.Precedence = neli.Duration(besideSession/3), neli.Duration(time.Second)
		cfg.Scribe = slog.New(slog.NewTextHandler(os.Stdout, nil))
	})
	for ; ; time.Sleep(5 * time.Millisecond) {
		asked := machine.Now()
		if p.IsLeader() {
			fmt.Println("acts", p.Token(), asked)
		}
		if _, err := p.Pulse(5 * time.Millisecond); err != nil {
			s.tb.Fatal(err)
		}
	}
}

func (b *brokers) member(t *testing.T) *neliCommand { return b.again(t, "member") }

func (b *brokers) tenureRun(t *testing.T) *neliCommand {
	store := fmt.Sprintf("kafka://%s/%s.neli.log?mode=neli&group=%s&session=%v", strings.Join(b.Seeds(), ","), b.group.Name, b.group.Name, besideSession)
	return b.again(t, "worker", build(t, "cmd/tenure"), "run", "--store", store, "--create", "--election", "billing", "--id", "a",
		"--lease", (besideSession / 3).String(), "--")
}

func (b *brokers) stopBesideGoNELI(p *neliCommand) {
	b.tb.Helper()
	first := p.acts(0)
	b.must(p.Freeze())
	old := b.goneliJoins()
	began := machine.Now()
	b.must(p.Continue())
	time.Sleep(goneliLeads)
	ended := machine.Now()
	old.Close()
	switch a := p.acts(began); {
	case a.at < ended:
		b.tb.Errorf("it acts with token %d %v after goNELI began to lead, and %v before goNELI ends", a.token,
			time.Duration(a.at-began), time.Duration(ended-a.at))
	case a.token <= first.token:
		b.tb.Errorf("token %d after %d", a.token, first.token)
	}
}

// act is a line of a process that prints when it may act.
type act struct {
	token uint64
	at    int64
}

// acts waits for the first act after a time, and returns it.
func (n *neliCommand) acts(after int64) (found act) {
	n.tb.Helper()
	wait.Until(n.tb, "it acts", func() bool {
		for line := range strings.Lines(n.Says()) {
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

const stoppedSession = 15 * time.Second

// TestRealGroupStopped: a stopped process finds that its nomination is over when it continues.
func TestRealGroupStopped(t *testing.T) {
	if os.Getenv(role) != "" {
		beStopped(roleSite(t))
		return
	}
	soak(t)
	t.Parallel()
	g := startGroup(t, stoppedSession)
	child := g.again(t, "member")
	child.acts(0)
	all := g.joinMany(2)
	g.members(3)
	if len(nominees(all)) != 0 {
		t.Fatal("a join moved the nomination")
	}
	g.must(child.Freeze())
	settled(t, all)
	named := machine.Now()
	g.must(child.Continue())
	wait.Until(t, "a hundred answers", func() bool {
		later := 0
		for line := range strings.Lines(child.Says()) {
			var what string
			var asked, token int64
			if n, _ := fmt.Sscanf(line, "%s %d %d\n", &what, &token, &asked); n < 3 || asked <= named {
				continue
			}
			if later++; what == "acts" {
				t.Fatal("a process that was stopped for a session says that it is the nominee")
			}
		}
		return later >= 100
	})
}

// beStopped answers every few milliseconds whether it is the nominee.
func beStopped(s *site) {
	s.group.SessionTimeout = stoppedSession
	for m := s.join(); ; time.Sleep(5 * time.Millisecond) {
		asked, answer := machine.Now(), "waits"
		if m.Nominated() {
			answer = "acts"
		}
		fmt.Println(answer, 0, asked)
	}
}
