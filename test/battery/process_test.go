//go:build integration && linux

package main

import (
	"flag"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/tenure-go/tenure/internal/crew"
	"github.com/tenure-go/tenure/internal/test/wait"
	"github.com/tenure-go/tenure/test/internal/natsd"
)

// sleeper runs an idle process with the mark of a stage and the variables that tenure would set.
func sleeper(t *testing.T, mark string, env ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command("sleep", "infinity")
	cmd.Env = append([]string{markVariable + "=" + mark}, env...)
	crew.Separate(cmd)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	wait.Until(t, "it to show its environment", func() bool { return len(marked(t, mark)) > 0 })
	return cmd
}

func marked(t *testing.T, mark string) []process {
	t.Helper()
	all, err := processesOf(mark)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestOrphans: a process of an older worker is found when a newer worker starts, even if it is
// idle. A process of a tenure that has ended is found, too.
func TestOrphans(t *testing.T) {
	for _, c := range []struct {
		name, why string
		env       []string
		orphans   int
	}{
		{"older", "it has a lower token", []string{"TENURE_TOKEN=6", "TENURE_ID=c1"}, 1},
		{"present", "it is the one that began", []string{"TENURE_TOKEN=7", "TENURE_ID=c1"}, 0},
		{"guard", "it got no token", nil, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := bareStage(t)
			sleeper(t, s.mark, c.env...)
			sleeper(t, "another stage", "TENURE_TOKEN=1")
			s.inspect(reign{token: 7, candidate: 2})
			if s.seen.orphans != c.orphans || len(s.seen.wrong) != c.orphans {
				t.Errorf("%d orphans, want %d: %s; %q", s.seen.orphans, c.orphans, c.why, s.seen.wrong)
			}
		})
	}
	t.Run("ended", func(t *testing.T) {
		s := bareStage(t)
		sleeper(t, s.mark, "TENURE_TOKEN=7", "TENURE_ID=c2")
		for number, want := range map[int]int{1: 0, 2: 1} {
			if err := s.checkLeftovers(&candidate{stage: s, number: number}, 0); err != nil || s.seen.orphans != want {
				t.Errorf("%d orphans of c%d, want %d, %v", s.seen.orphans, number, want, err)
			}
			s.seen = outcome{}
		}
	})
	t.Run("killed", func(t *testing.T) {
		s := bareStage(t)
		cmd := sleeper(t, s.mark, "TENURE_TOKEN=6", "TENURE_ID=c1")
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		// It becomes a zombie, because no process waits for it, and does not count as a process.
		wait.Until(t, "its end", func() bool { return len(marked(t, s.mark)) == 0 })
	})
}

// TestStrike: no process of a stage is left.
func TestStrike(t *testing.T) {
	s := bareStage(t)
	cmd := sleeper(t, s.mark)
	if err := crew.Freeze(cmd.Process.Pid); err != nil {
		t.Fatal(err)
	}
	s.killAll()
	if err := cmd.Wait(); err == nil || cmd.ProcessState.ExitCode() != -1 {
		t.Errorf("it ended with %v", err)
	}
}

func TestMain(m *testing.M) {
	natsd.Main()
	if err := flag.Set("test.parallel", "4"); err != nil { // rows mostly wait
		panic(err)
	}
	os.Exit(m.Run())
}

// TestPlay checks the battery itself: one row of each sort, or one row with -short. The command
// runs the rest and the controls.
func TestPlay(t *testing.T) {
	names := []string{"crash-both", "blackhole", "stop", "agent-freeze"}
	if testing.Short() {
		names = names[:1]
	}
	b, err := open(wait.Context(t), options{quick: true, lease: 1500 * time.Millisecond, runs: 1, seed: 1}, t.Output())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.close)
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			chosen, err := choose([]string{"nats"}, name)
			if err != nil {
				t.Fatal(err)
			}
			j := &job{row: chosen[0], runs: 1}
			b.perform(j)
			if o := j.seen; !j.passed() || o.acts.Terms < members {
				t.Errorf("%+v\n%s", o, j.evidence)
			}
		})
	}
}
