//go:build integration && unix

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/tenure-go/tenure/cmd/internal/test/guardtest"
	"github.com/tenure-go/tenure/cmd/internal/test/program"
	"github.com/tenure-go/tenure/cmd/tenure-demo/internal/test/servers"
	"github.com/tenure-go/tenure/internal/test/wait"
)

// line is one line of --json.
type line struct {
	Time      time.Time
	Event     string
	Election  string
	ID        string
	Term      uint64
	Cause     string
	Do        string
	Kind      string
	Process   int
	Elections int
	Acts      int
	Overlaps  *int
	Address   string

	Millis      float64
	LeastMillis *float64
	MostMillis  *float64
	Failovers   []struct {
		Kind string
		N    int
	}
}

// show is a demo that runs in its own process.
type show struct {
	*testing.T
	cmd    *exec.Cmd
	stdout io.ReadCloser
	scan   *bufio.Scanner
	errs   guardtest.Output
	temp   string
	lines  []line
}

// begin runs "tenure-demo --json" with its own directory for temporary files.
func begin(t *testing.T, args ...string) *show {
	t.Helper()
	return beginWith(t, nil, args...)
}

// beginWith is begin with further environment variables.
func beginWith(t *testing.T, env []string, args ...string) *show {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	s := &show{T: t, temp: t.TempDir(), cmd: exec.Command(self, append([]string{"--json"}, args...)...)}
	s.cmd.Env = append(append(os.Environ(), program.Env, "TMPDIR="+s.temp), env...)
	s.cmd.Stderr = &s.errs
	if s.stdout, err = s.cmd.StdoutPipe(); err != nil {
		t.Fatal(err)
	}
	s.scan = bufio.NewScanner(s.stdout)
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.cmd.Process.Kill() })
	return s
}

// read returns the next line, and false after the last one.
func (s *show) read() (line, bool) {
	s.Helper()
	if !s.scan.Scan() {
		return line{}, false
	}
	var l line
	if err := json.Unmarshal(s.scan.Bytes(), &l); err != nil {
		s.Fatalf("%v in %s", err, s.scan.Text())
	}
	if l.Time.IsZero() || l.Event == "" || l.Election == "" {
		s.Errorf("a field is missing: %s", s.scan.Text())
	}
	s.lines = append(s.lines, l)
	return l, true
}

// await reads until a line matches.
func (s *show) await(what string, is func(line) bool) line {
	s.Helper()
	defer context.AfterFunc(wait.Context(s.T), func() { _ = s.cmd.Process.Kill() })()
	for l, ok := s.read(); ok; l, ok = s.read() {
		if is(l) {
			return l
		}
	}
	s.Fatalf("no line says: %s; on standard error:\n%s", what, &s.errs)
	return line{}
}

// end reads the rest and returns the summary, which must be the last line.
func (s *show) end() line {
	s.Helper()
	defer context.AfterFunc(wait.Context(s.T), func() { _ = s.cmd.Process.Kill() })()
	for _, ok := s.read(); ok; _, ok = s.read() {
	}
	if err := s.cmd.Wait(); err != nil {
		s.Fatalf("%v; on standard error:\n%s", err, &s.errs)
	}
	if s.errs.String() != "" {
		s.Errorf("on standard error:\n%s", &s.errs)
	}
	last := s.lines[len(s.lines)-1]
	if last.Event != "summary" || last.Overlaps == nil {
		s.Fatalf("the last line is no summary: %+v", last)
	}
	return last
}

func (s *show) count(is func(line) bool) int {
	n := 0
	for _, l := range s.lines {
		if is(l) {
			n++
		}
	}
	return n
}

func isElected(l line) bool { return l.Event == "elected" }

func isDo(do string) func(line) bool {
	return func(l line) bool { return l.Event == "demo" && l.Do == do }
}

// nothingLeft checks that no candidate runs and that no file is left.
func (s *show) nothingLeft() {
	s.Helper()
	for _, l := range s.lines {
		if l.Process != 0 {
			s.gone(l.Process)
		}
	}
	files, err := os.ReadDir(s.temp)
	if err != nil || len(files) > 0 {
		s.Errorf("left behind: %v %v", files, err)
	}
}

// gone waits until the process has ended. An orphan may need a moment.
func (s *show) gone(pid int) {
	s.Helper()
	wait.Until(s.T, fmt.Sprintf("the end of process %d", pid), func() bool { return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) })
}

// survives waits until the demo has disturbed a leader in each of its ways, with a successor each
// time. Then it interrupts the demo, and checks that there were never two leaders and that terms
// never fell.
func (s *show) survives() (sum line) {
	s.Helper()
	for _, do := range []string{"kill", "pause", "stop"} {
		disturbed := s.await("the leader is disturbed", isDo(do))
		s.await("a successor leads", func(l line) bool { return isElected(l) && l.Term > disturbed.Term })
	}
	sum = interrupt(s.T, s)
	if n := s.count(isElected); sum.Elections != n {
		s.Errorf("%d elections, and the summary says %d", n, sum.Elections)
	}
	if *sum.Overlaps != 0 || sum.Acts < 4 {
		s.Errorf("%d overlaps in %d acts", *sum.Overlaps, sum.Acts)
	}
	terms := uint64(0)
	for _, l := range s.lines {
		if isElected(l) {
			if l.Term <= terms {
				s.Errorf("term %d after %d", l.Term, terms)
			}
			terms = l.Term
		}
	}
	s.nothingLeft()
	return sum
}

// leastIsShown checks that some failover has a minimum time. Tests without a real clock check its
// value.
func (s *show) leastIsShown() {
	s.Helper()
	if s.count(func(l line) bool { return l.Do == "failover" && l.LeastMillis != nil }) == 0 {
		s.Error("no failover has a least time")
	}
}

func TestDemoSurvivesKillsPausesAndStopsWithoutOverlap(t *testing.T) {
	t.Parallel()
	s := begin(t, "--lease", "1s", "--crash-every", "1s")
	s.survives()
	if s.count(isDo("failover")) == 0 {
		t.Error("no failover is reported")
	}
}

// The demo ends after the time in --for.
func TestDemoEndsByItself(t *testing.T) {
	t.Parallel()
	s := begin(t, "--for", "2s", "--candidates", "2", "--crash-every", "0")
	s.end()
	if s.count(isDo("start")) != 2 {
		t.Errorf("%d candidates", s.count(isDo("start")))
	}
	s.nothingLeft()
}

func TestDemoFailsOverWhenTheKeyIsDeleted(t *testing.T) {
	t.Parallel()
	url := servers.NATS(t).ClientURL()
	s := begin(t, "--store", url+"/ELECTIONS?pristine=true", "--create", "--election", "billing", "--candidates", "3", "--lease", "1s", "--crash-every", "0")
	last, kind := s.await("a candidate leads", isElected), ""
	for kind != "forced" { // on a slow machine a leader may lose its lease in another way
		servers.DeleteKey(t, url, "ELECTIONS", "billing")
		next := s.await("a failover", isDo("failover"))
		if next.Term <= last.Term || next.Election != "billing" {
			t.Errorf("got %+v after %+v", next, last)
		}
		last, kind = next, next.Kind
	}
	if err := s.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	sum := s.end()
	for _, f := range sum.Failovers {
		if deed := f.Kind == "crash" || f.Kind == "pause" || f.Kind == "graceful"; deed && f.N > 0 || f.Kind == "forced" && f.N == 0 {
			t.Errorf("%d failovers are %s", f.N, f.Kind)
		}
	}
	if *sum.Overlaps != 0 {
		t.Errorf("%d overlaps", *sum.Overlaps)
	}
	s.nothingLeft()
}

// Only a write shows that writing is denied, so the candidates have started by then.
func TestDemoEndsWithoutTheRightToWrite(t *testing.T) {
	t.Parallel()
	rights := &server.Permissions{Publish: &server.SubjectPermission{Deny: []string{"$KV.>"}}}
	url := servers.NATS(t, &server.User{Username: "reader", Password: "s3cret", Permissions: rights}).ClientURL()
	host := strings.TrimPrefix(url, "nats://")
	s := begin(t, "--store", "nats://reader:s3cret@"+host+"/ELECTIONS", "--create", "--candidates", "2")
	for _, ok := s.read(); ok; _, ok = s.read() {
	}
	_ = s.cmd.Wait()
	if code := s.cmd.ProcessState.ExitCode(); code != 1 {
		t.Errorf("exit code %d", code)
	}
	got := s.errs.String()
	if !strings.HasPrefix(got, "error: --store nats://***@"+host+"/ELECTIONS: ") || !strings.Contains(got, "$KV.ELECTIONS.demo") ||
		!strings.Contains(got, "\nhint: grant it") || strings.Contains(got, "s3cret") {
		t.Errorf("got %q", got)
	}
	s.nothingLeft()
}

func TestDemoExplainsHowToCreateAMissingBucket(t *testing.T) {
	t.Parallel()
	url := servers.NATS(t).ClientURL()
	s := begin(t, "--store", url+"/MISSING")
	out, _ := io.ReadAll(s.stdout)
	_ = s.cmd.Wait()
	if s.cmd.ProcessState.ExitCode() != 1 || len(out) > 0 {
		t.Errorf("exit code %d, output %q", s.cmd.ProcessState.ExitCode(), out)
	}
	want := "error: --store " + url + "/MISSING: there is no bucket MISSING\n" +
		"hint: check its name; --create, which tenure run and tenure-demo have, makes it, and so does: nats --server " + url + " kv add MISSING --history 1 --storage file\n"
	if got := s.errs.String(); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// A killed demo cannot end its candidates, and one of them is frozen. They end all the same.
func TestCandidatesEndWithTheDemo(t *testing.T) {
	t.Parallel()
	url := servers.NATS(t).ClientURL()
	s := begin(t, "--store", url+"/ELECTIONS?pristine=true", "--create", "--candidates", "3", "--lease", "2s", "--crash-every", "500ms")
	s.await("one is frozen", isDo("pause"))
	if err := s.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	for _, ok := s.read(); ok; _, ok = s.read() {
	}
	_ = s.cmd.Wait()
	s.nothingLeft()
}

func TestDemoEndsCleanlyWithoutAReader(t *testing.T) {
	t.Parallel()
	s := begin(t, "--candidates", "2", "--crash-every", "500ms")
	s.await("a candidate leads", isElected)
	if err := s.stdout.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.cmd.Wait(); err != nil {
		t.Errorf("%v; on standard error:\n%s", err, &s.errs)
	}
	s.nothingLeft()
}

// The original demo program took a context of the nats command from its environment.
func TestDemoUsesTheContextOfTheEnvironment(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.MkdirAll(dir+"/nats/context", 0o700); err != nil {
		t.Fatal(err)
	}
	text := `{"url": "` + servers.NATS(t).ClientURL() + `"}`
	if err := os.WriteFile(dir+"/nats/context/prod.json", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	s := beginWith(t, []string{"XDG_CONFIG_HOME=" + dir, "CONTEXT=prod", "KEY=k", "WORKERS=2", "NOSPLAY=1"}, "--create")
	if l := s.await("a candidate leads", isElected); l.Election != "k" || !strings.HasPrefix(l.ID, "c") {
		t.Errorf("got %+v", l)
	}
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	s.end()
	if n := s.count(isDo("start")); n != 2 {
		t.Errorf("%d candidates", n)
	}
	s.nothingLeft()
}
