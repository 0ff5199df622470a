//go:build integration && unix

package kafka

import (
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tenure-go/tenure/compat/neli"
	"github.com/tenure-go/tenure/internal/test/wait"
	"github.com/tenure-go/tenure/test/internal/machine"
	"github.com/twmb/franz-go/pkg/kgo"
)

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
	n.must(machine.Pause(cmd.Process.Pid))
	old := n.client(kgo.ConsumerGroup(n.group), kgo.ConsumeTopics(n.group+".neli"), kgo.Balancers(kgo.RangeBalancer()))
	wait.Until(n.tb, "goNELI is admitted", func() bool { _, generation := old.GroupMetadata(); return generation > 0 })
	began := machine.Now()
	n.must(machine.Resume(cmd.Process.Pid))
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
	machine.Together(p.cmd)
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
