//go:build integration && unix

package main

import (
	"os"
	"strings"
	"testing"

	"github.com/tenure-go/tenure/cmd/tenure-demo/internal/test/servers"
	"github.com/tenure-go/tenure/internal/test/wait"
)

// renewals waits for n more writes, and returns the number of reads in that time.
func renewals(t *testing.T, o *servers.Objects, n int64) int64 {
	t.Helper()
	gets, last := o.Gets.Load(), o.Puts.Load()+n
	wait.Until(t, "renewals", func() bool { return o.Puts.Load() >= last })
	return o.Gets.Load() - gets
}

func interrupt(t *testing.T, s *show) line {
	t.Helper()
	if err := s.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	return s.end()
}

// The demo kills, freezes and stops leaders, and prints the bounds.
func TestDemoOnObjectStorageSurvivesKillsPausesAndStops(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{"polled": nil, "peers": {"--peer", "127.0.0.1:0"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := begin(t, append(args, "--store", "s3-embedded:", "--candidates", "3", "--crash-every", "500ms")...)
			s.survives()
			for _, l := range s.lines {
				if l.Do != "failover" {
					continue
				}
				if l.LeastMillis == nil && l.Kind == "crash" {
					t.Error("a crash without a least time")
				}
				if (l.MostMillis != nil) != (name == "polled" && l.LeastMillis != nil) {
					t.Errorf("bounds of %s: %v %v", l.Kind, l.LeastMillis, l.MostMillis)
				}
			}
			s.leastIsShown()
		})
	}
}

// With peers, followers of a living leader read nothing and know its address. On a slow machine a
// push of the leader may be late, and then they read. Members that poll read all the time.
func TestDemoWithPeersReadsNothingWhileALeaderLives(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{"polled": nil, "peers": {"--peer", "127.0.0.1:0"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := servers.StartObjects(t)
			s := begin(t, append(args, "--store", o.URL, "--lease", "4s", "--renew", "500ms", "--candidates", "4", "--crash-every", "0")...)
			s.await("a candidate leads", isElected)
			wait.Until(t, "only those read that poll", func() bool { return (renewals(t, o, 4) > 0) == (name == "polled") })
			sum := interrupt(t, s)
			published := s.count(func(l line) bool { return l.Event == "leader" && strings.HasPrefix(l.Address, "127.0.0.1:") })
			if (published > 0) != (name == "peers") || *sum.Overlaps != 0 {
				t.Errorf("%d addresses, %d overlaps", published, *sum.Overlaps)
			}
			s.nothingLeft()
		})
	}
}

func TestDemoSurvivesAnOutageOfObjectStorage(t *testing.T) {
	t.Parallel()
	o := servers.StartObjects(t)
	s := begin(t, "--store", o.URL, "--lease", "2s", "--candidates", "3", "--crash-every", "0", "--peer", "127.0.0.1:0")
	first := s.await("a candidate leads", isElected)
	o.Down.Store(true)
	s.await("the leader gives up in time", func(l line) bool { return l.Event == "lost" })
	o.Down.Store(false)
	if next := s.await("a candidate leads again", isElected); next.Term <= first.Term {
		t.Errorf("term %d after %d", next.Term, first.Term)
	}
	if sum := interrupt(t, s); *sum.Overlaps != 0 {
		t.Errorf("%d overlaps", *sum.Overlaps)
	}
	s.nothingLeft()
}

func TestDemoEndsWithoutTheRightToWriteObjects(t *testing.T) {
	t.Parallel()
	o := servers.StartObjects(t)
	o.ReadOnly = true
	s := begin(t, "--store", o.URL, "--candidates", "2")
	fails(t, s, "error: --store s3://bucket/p?endpoint=", "s3:PutObject on arn:aws:s3:::bucket/p/*", "\nhint: grant it")
	s.nothingLeft()
}

func TestDemoWithInspectRefusesAServerThatIgnoresConditions(t *testing.T) {
	t.Parallel()
	o := servers.StartObjects(t)
	o.Careless = true
	s := begin(t, "--store", o.URL, "--inspect")
	fails(t, s, "error: --store s3://bucket/p?endpoint=", "unsafe: If-", "\nhint: ")
	if o.Puts.Load() < 1 || s.count(isDo("start")) > 0 {
		t.Errorf("%d writes, and candidates were started", o.Puts.Load())
	}
}

func TestDemoEndsOnAServerThatIgnoresConditions(t *testing.T) {
	t.Parallel()
	o := servers.StartObjects(t)
	o.Careless = true
	s := begin(t, "--store", o.URL, "--candidates", "2")
	fails(t, s, "error: candidate ", "the store is unfit for elections: If-None-Match: ", "use a server, or a release of it")
	s.nothingLeft()
}

// fails checks that the demo ends with exit code 1 and with these texts on standard error.
func fails(t *testing.T, s *show, wants ...string) {
	t.Helper()
	for _, ok := s.read(); ok; _, ok = s.read() {
	}
	_ = s.cmd.Wait()
	if code := s.cmd.ProcessState.ExitCode(); code != 1 {
		t.Errorf("exit code %d", code)
	}
	got := s.errs.String()
	for _, want := range wants {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in %q", want, got)
		}
	}
	if strings.Contains(got, "s3cret") {
		t.Errorf("shows the secret: %q", got)
	}
}
