//go:build integration && unix

package kafka

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tenure-go/tenure/driver/kafkalog/group"
	"github.com/tenure-go/tenure/test/internal/machine"
	"github.com/twmb/franz-go/pkg/kgo"
)

const stoppedSession = 15 * time.Second

// TestRealGroupStopped: a stopped process finds that its nomination is over when it continues.
func TestRealGroupStopped(t *testing.T) {
	if seeds := os.Getenv("TENURE_TEST_STOPPED"); seeds != "" {
		beStopped(t, strings.Split(seeds, ","), os.Getenv("TENURE_TEST_GROUP"))
		return
	}
	soak(t)
	t.Parallel()
	g := startGuild(t, stoppedSession)
	child := exec.Command(os.Args[0], "-test.run=^TestRealGroupStopped$", "-test.v")
	child.Env = append(os.Environ(), "TENURE_TEST_STOPPED="+strings.Join(g.Seeds(), ","), "TENURE_TEST_GROUP="+g.cfg.Name)
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = child.Process.Kill()
		_ = child.Wait()
	}()
	answers := make(chan answer, 1<<16) // more than the child sends
	go func() {
		defer close(answers)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			var a answer
			if n, _ := fmt.Sscanf(lines.Text(), "nominated: %t at %d", &a.yes, &a.asked); n == 2 {
				answers <- a
			}
		}
	}()
	for yes := false; !yes; {
		a, goesOn := <-answers
		if yes = a.yes; !goesOn {
			t.Fatal("the child has ended")
		}
	}
	all := g.party().joinMany(2)
	g.party().members(3)
	if len(nominees(all)) != 0 {
		t.Fatal("a join moved the nomination")
	}
	if err := child.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	settled(t, all)
	named := machine.Now()
	if err := child.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	for later := 0; later < 100; {
		a, goesOn := <-answers
		switch {
		case !goesOn:
			t.Fatal("the child has ended")
		case a.asked <= named:
			continue
		case a.yes:
			t.Fatal("a process that was stopped for a session says that it is the nominee")
		}
		later++
	}
}

// answer is the child's answer, with the time of the request.
type answer struct {
	yes   bool
	asked int64
}

// beStopped answers every few milliseconds whether it is the nominee.
func beStopped(t *testing.T, seeds []string, name string) {
	g, err := group.Join(within(t), []kgo.Opt{kgo.SeedBrokers(seeds...)}, group.Config{Name: name, SessionTimeout: stoppedSession})
	if err != nil {
		t.Fatal(err)
	}
	for range 60_000 {
		asked := machine.Now()
		fmt.Printf("nominated: %t at %d\n", g.Nominated(), asked)
		time.Sleep(5 * time.Millisecond)
	}
}
