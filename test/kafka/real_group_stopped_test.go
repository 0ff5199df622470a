//go:build integration && unix

package kafka

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
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
	t.Parallel()
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
	var yes, no atomic.Int64
	go func() {
		for lines := bufio.NewScanner(out); lines.Scan(); {
			switch lines.Text() {
			case "nominated: true":
				yes.Add(1)
			case "nominated: false":
				no.Add(1)
			}
		}
	}()
	eventually(t, "the child is the nominee", func() bool { return yes.Load() > 0 })
	all := g.joinMany(2)
	time.Sleep(3 * time.Second)
	if len(nominees(all)) != 0 {
		t.Fatal("a join moved the nomination")
	}
	if err := child.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	settled(t, all)
	for before := int64(-1); before != yes.Load()+no.Load(); time.Sleep(time.Second) { // until all was heard that it said before
		before = yes.Load() + no.Load()
	}
	yes.Store(0)
	no.Store(0)
	if err := child.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a hundred answers", func() bool { return yes.Load()+no.Load() >= 100 })
	if n := yes.Load(); n > 0 {
		t.Errorf("a process that was stopped for a session says %d times that it is the nominee", n)
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
