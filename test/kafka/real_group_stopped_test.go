//go:build unix

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
	"github.com/twmb/franz-go/pkg/kgo"
)

// TestRealGroupStopped: a process that is stopped finds its nomination over when it goes on.
func TestRealGroupStopped(t *testing.T) {
	if seeds := os.Getenv("TENURE_TEST_STOPPED"); seeds != "" {
		beStopped(t, strings.Split(seeds, ","), os.Getenv("TENURE_TEST_GROUP"))
		return
	}
	g := startGuild(t, 6*time.Second)
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
	says := make(chan string, 1000)
	go func() {
		defer close(says)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			if line, ok := strings.CutPrefix(lines.Text(), "nominated: "); ok {
				says <- line
			}
		}
	}()
	for said := range says {
		if said == "true" {
			break
		}
	}
	all := g.joinMany(2)
	time.Sleep(3 * time.Second)
	if len(nominees(all)) != 0 {
		t.Fatal("a join moved the nomination")
	}
	if err := child.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	settled(t, all)
	for len(says) > 0 {
		<-says
	}
	if err := child.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	heard := 0
	for end := time.After(3 * time.Second); ; {
		select {
		case said := <-says:
			if heard++; said == "true" {
				t.Error("a process that was stopped for a session says that it is the nominee")
			}
			continue
		case <-end:
		}
		break
	}
	if heard < 100 {
		t.Errorf("it answered %d times", heard)
	}
}

// beStopped answers every few milliseconds whether it is the nominee. The answer is printed after it was computed, so a
// process that is stopped between the two may print one that is old; it marks those by the time between.
func beStopped(t *testing.T, seeds []string, name string) {
	g, err := group.Join(within(t), []kgo.Opt{kgo.SeedBrokers(seeds...)}, group.Config{Name: name, SessionTimeout: 6 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	for range 12_000 {
		asked := time.Now()
		yes := g.Nominated()
		if time.Since(asked) < time.Second {
			fmt.Println("nominated:", yes)
		}
		time.Sleep(5 * time.Millisecond)
	}
}
