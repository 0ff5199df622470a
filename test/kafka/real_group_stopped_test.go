//go:build integration && unix

package kafka

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/tenure-go/tenure/internal/crew"
	"github.com/tenure-go/tenure/internal/test/wait"
	"github.com/tenure-go/tenure/test/internal/machine"
)

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
	child.start()
	child.acts(0)
	all := g.joinMany(2)
	g.members(3)
	if len(nominees(all)) != 0 {
		t.Fatal("a join moved the nomination")
	}
	g.must(crew.Freeze(child.cmd.Process.Pid))
	settled(t, all)
	named := machine.Now()
	g.must(crew.Continue(child.cmd.Process.Pid))
	wait.Until(t, "a hundred answers", func() bool {
		later := 0
		for line := range strings.Lines(child.String()) {
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
