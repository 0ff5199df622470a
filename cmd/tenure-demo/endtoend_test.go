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
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/tenure-go/tenure/cmd/internal/test/guardtest"
	"github.com/tenure-go/tenure/cmd/internal/test/must"
	"github.com/tenure-go/tenure/cmd/internal/test/program"
	"github.com/tenure-go/tenure/cmd/tenure-demo/internal/test/servers"
	"github.com/tenure-go/tenure/internal/crew"
	"github.com/tenure-go/tenure/internal/test/wait"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
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
	s := &show{T: t, temp: t.TempDir(), cmd: crew.Self(append([]string{"--json"}, args...)...)}
	s.cmd.Env = append(os.Environ(), program.Env, "TMPDIR="+s.temp)
	s.cmd.Stderr = &s.errs
	var err error
	if s.stdout, err = s.cmd.StdoutPipe(); err != nil {
		t.Fatal(err)
	}
	s.scan = bufio.NewScanner(s.stdout)
	must.OK(t, s.cmd.Start())
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

// finish reads the rest, and returns the exit code.
func (s *show) finish() int {
	s.Helper()
	defer context.AfterFunc(wait.Context(s.T), func() { _ = s.cmd.Process.Kill() })()
	for _, ok := s.read(); ok; _, ok = s.read() {
	}
	_ = s.cmd.Wait()
	return s.cmd.ProcessState.ExitCode()
}

// end checks that nothing is left, and returns the summary, which must be the last line. It must
// report no overlap.
func (s *show) end() line {
	s.Helper()
	if code := s.finish(); code != 0 || s.errs.String() != "" {
		s.Fatalf("exit code %d; on standard error:\n%s", code, &s.errs)
	}
	last := s.lines[len(s.lines)-1]
	if last.Event != "summary" || last.Overlaps == nil {
		s.Fatalf("the last line is no summary: %+v", last)
	}
	if *last.Overlaps != 0 {
		s.Errorf("%d overlaps", *last.Overlaps)
	}
	s.nothingLeft()
	return last
}

// interrupt ends the demo as Ctrl-C does.
func (s *show) interrupt() line {
	s.Helper()
	must.OK(s, s.cmd.Process.Signal(os.Interrupt))
	return s.end()
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

// The demo kills, freezes and stops leaders on each kind of store. There are never two leaders, and
// terms never fall. Tests without a real clock check the values of the bounds.
func TestDemoSurvivesKillsPausesAndStops(t *testing.T) {
	t.Parallel()
	for name, args := range map[string]string{
		"NATS":                      "--lease 1s --crash-every 1s",
		"Kafka":                     "--store kafka-embedded:?timeout=20s --candidates 3 --lease 2s --crash-every 500ms",
		"Kafka, a group":            "--store kafka-embedded:?mode=neli&session=1s&timeout=20s --candidates 3 --lease 2s --crash-every 500ms",
		"object storage":            "--store s3-embedded: --candidates 3 --crash-every 500ms",
		"object storage with peers": "--store s3-embedded: --candidates 3 --crash-every 500ms --peer 127.0.0.1:0",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := begin(t, strings.Fields(args)...)
			for _, do := range []string{"kill", "pause", "stop"} {
				disturbed := s.await("the leader is disturbed", isDo(do))
				s.await("a successor leads", func(l line) bool { return isElected(l) && l.Term > disturbed.Term })
			}
			if sum, n := s.interrupt(), s.count(isElected); sum.Elections != n || sum.Acts < 4 {
				t.Errorf("%d elections, and the summary says %d, with %d acts", n, sum.Elections, sum.Acts)
			}
			if n := s.count(func(l line) bool { return l.Event == "alarm" }); n > 0 {
				t.Errorf("%d alarms", n)
			}
			terms, bounds := uint64(0), 0
			for _, l := range s.lines {
				switch {
				case isElected(l):
					if l.Term <= terms {
						t.Errorf("term %d after %d", l.Term, terms)
					}
					terms = l.Term
				case l.Do == "failover":
					if l.LeastMillis != nil {
						bounds++
					} else if l.Kind == "crash" && strings.HasPrefix(name, "object storage") {
						t.Error("a crash without a least time")
					}
					if (l.MostMillis != nil) != (name == "object storage" && l.LeastMillis != nil) {
						t.Errorf("bounds of %s: %v %v", l.Kind, l.LeastMillis, l.MostMillis)
					}
				}
			}
			if bounds == 0 {
				t.Error("no failover has a least time")
			}
		})
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
	for _, f := range s.interrupt().Failovers {
		if deed := f.Kind == "crash" || f.Kind == "pause" || f.Kind == "graceful"; deed && f.N > 0 || f.Kind == "forced" && f.N == 0 {
			t.Errorf("%d failovers are %s", f.N, f.Kind)
		}
	}
}

// A demo that cannot go on says why, shows no secret, and leaves nothing behind. Only a write shows
// that writing is denied, and that a server ignores conditions, so the candidates have started by
// then.
func TestDemoFails(t *testing.T) {
	t.Parallel()
	// objects returns the flags for object storage that is changed.
	objects := func(change func(*servers.Objects)) func(*testing.T) string {
		return func(t *testing.T) string {
			o := servers.StartObjects(t)
			change(o)
			return o.URL
		}
	}
	careless := func(o *servers.Objects) { o.Careless.Store(true) }
	for name, c := range map[string]struct {
		store  func(*testing.T) string
		flags  string
		starts bool
		wants  []string // none: any error, and one of the command line
	}{
		"NATS without the right to write": {func(t *testing.T) string {
			rights := &server.Permissions{Publish: &server.SubjectPermission{Deny: []string{"$KV.>"}}}
			url := servers.NATS(t, &server.User{Username: "reader", Password: "s3cret", Permissions: rights}).ClientURL()
			return strings.Replace(url, "//", "//reader:s3cret@", 1) + "/ELECTIONS"
		}, "--create", true, []string{"error: --store nats://***@", "/ELECTIONS: ", "$KV.ELECTIONS.demo", "\nhint: grant it"}},
		"a missing bucket": {func(t *testing.T) string { return servers.NATS(t).ClientURL() + "/MISSING" }, "", false, []string{
			"/MISSING: there is no bucket MISSING\nhint: check its name; --create, which the commands that hold elections have, makes it, and so does: nats --server nats://",
			" kv add MISSING --history 1 --storage file\n",
		}},
		"Kafka without the right to write": {func(t *testing.T) string {
			var rights []kfake.ACL
			for _, o := range []kmsg.ACLOperation{kmsg.ACLOperationRead, kmsg.ACLOperationDescribe, kmsg.ACLOperationCreate} {
				rights = append(rights, kfake.ACL{
					Resource: kmsg.ACLResourceTypeTopic, Name: "elections", Pattern: kmsg.ACLResourcePatternTypeLiteral, Operation: o, Allow: true,
				})
			}
			hosts := servers.Kafka(t, kfake.EnableSASL(), kfake.EnableACLs(), kfake.User("PLAIN", "reader", "s3cret", rights...))
			return "kafka://reader:s3cret@" + hosts + "/elections?timeout=20s"
		}, "--create", true, []string{
			"error: --store kafka://***@", "/elections?timeout=20s: ", "TOPIC_AUTHORIZATION_FAILED", "\nhint: grant it with kafka-acls.sh",
		}},
		"object storage without the right to write": {objects(func(o *servers.Objects) { o.ReadOnly.Store(true) }), "", true, []string{
			"error: --store s3://bucket/p?endpoint=", "s3:PutObject on arn:aws:s3:::bucket/p/*", "\nhint: docs/object-storage.md has a policy",
		}},
		"conditions are ignored": {objects(careless), "", true, []string{
			"error: candidate ", "the store is unfit for elections: If-None-Match: ", "use a server, or a release of it",
		}},
		"conditions are ignored, with --inspect": {objects(careless), "--inspect", false, []string{
			"error: --store s3://bucket/p?endpoint=", "unsafe: If-", "\nhint: ",
		}},
		"a rude server": {func(t *testing.T) string { return "nats://" + program.Rude(t) + "/E" }, "", false, nil},
		"no scheme":     {func(*testing.T) string { return program.Hostile }, "", false, nil},
		"no bucket":     {func(*testing.T) string { return "nats://h/" + program.Hostile }, "", false, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := begin(t, append(strings.Fields(c.flags), "--candidates", "2", "--store", c.store(t))...)
			code, got := s.finish(), s.errs.String()
			if code <= 0 || code != 1 && c.wants != nil || (s.count(isDo("start")) > 0) != c.starts {
				t.Errorf("exit code %d, %d candidates were started", code, s.count(isDo("start")))
			}
			for _, want := range c.wants {
				if !strings.Contains(got, want) {
					t.Errorf("%q is not in %q", want, got)
				}
			}
			if strings.Contains(got, "s3cret") {
				t.Errorf("shows the secret: %q", got)
			}
			program.Harmless(t, got)
			s.nothingLeft()
		})
	}
}

// A killed demo cannot end its candidates, and one of them is frozen. They end all the same.
func TestCandidatesEndWithTheDemo(t *testing.T) {
	t.Parallel()
	url := servers.NATS(t).ClientURL()
	s := begin(t, "--store", url+"/ELECTIONS?pristine=true", "--create", "--candidates", "3", "--lease", "2s", "--crash-every", "500ms")
	s.await("one is frozen", isDo("pause"))
	must.OK(t, s.cmd.Process.Kill())
	s.finish()
	s.nothingLeft()
}

func TestDemoEndsCleanlyWithoutAReader(t *testing.T) {
	t.Parallel()
	s := begin(t, "--candidates", "2", "--crash-every", "500ms")
	s.await("a candidate leads", isElected)
	must.OK(t, s.stdout.Close())
	if err := s.cmd.Wait(); err != nil {
		t.Errorf("%v; on standard error:\n%s", err, &s.errs)
	}
	s.nothingLeft()
}

// Two demos with different groups hold one election. Both report this, and they never overlap.
func TestDemoReportsTwoGroupsOnOneElection(t *testing.T) {
	t.Parallel()
	store := "kafka://" + servers.Kafka(t) + "/elections?mode=neli&session=30s&timeout=20s&group="
	args := []string{"--create", "--candidates", "1", "--lease", "30s", "--crash-every", "0", "--store"}
	first := begin(t, append(args, store+"one")...)
	first.await("a candidate leads", isElected)
	second := begin(t, append(args, store+"two")...)
	l := second.await("an alarm", func(l line) bool { return l.Event == "alarm" })
	if !strings.Contains(l.Cause, `this candidate is of group "two", and the leader of group "one"`) || l.Term == 0 {
		t.Errorf("got %+v", l)
	}
	for _, s := range []*show{first, second} {
		s.interrupt()
	}
}

// renewals waits for n more writes, and returns the number of reads in that time.
func renewals(t *testing.T, o *servers.Objects, n int64) int64 {
	t.Helper()
	gets, last := o.Gets.Load(), o.Puts.Load()+n
	wait.Until(t, "renewals", func() bool { return o.Puts.Load() >= last })
	return o.Gets.Load() - gets
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
			s.interrupt()
			published := s.count(func(l line) bool { return l.Event == "leader" && strings.HasPrefix(l.Address, "127.0.0.1:") })
			if (published > 0) != (name == "peers") {
				t.Errorf("%d addresses", published)
			}
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
	s.interrupt()
}

// TestDemoOutput runs whole demos on servers inside the demo, and checks their text output.
func TestDemoOutput(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		env, args string
		says      []string
		not       string
	}{
		"object storage": {"", "--store s3-embedded:", []string{
			`^Election "demo" in s3://demo-election\?endpoint=http://127\.0\.0\.1:[0-9]+&region=us-east-1$`,
			`look in: +curl http://127\.0\.0\.1:[0-9]+/demo-election/demo$`, `a failover takes up to 2s longer than it must`, ` elected +#1 [0-9]+$`,
		}, "over http"},
		"with peers": {"TENURE_STORE=s3-embedded: TENURE_PEER=127.0.0.1:0", "", []string{
			`The leader reports to its followers directly, over http\.`, ` elected +#1 [0-9]+$`,
		}, "longer than it must"},
		"Kafka": {"", "--store kafka-embedded: --lease 30s", []string{
			`^Election "demo" in kafka://127\.0\.0\.1:[0-9]+,127\.0\.0\.1:[0-9]+,127\.0\.0\.1:[0-9]+/demo-election$`,
			`look in: +kafka-console-consumer\.sh --bootstrap-server 127\.0\.0\.1:[0-9]+,.* --topic demo-election --partition 0`, ` elected +#1 1$`,
		}, "force a failover"},
		"a group": {"TENURE_STORE=kafka-embedded:?mode=neli&session=30s&nominee-only=true", "--lease 30s --inspect", []string{
			`^Consumer group demo nominates the leader: the owner of partition 0 of demo\.neli\. No other candidate ever claims\.$`, ` elected +#1 1$`,
		}, "force a failover"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text := inWords(t, strings.Fields(c.env), strings.Fields(c.args))
			for _, want := range append(c.says, `; overlaps found: 0$`) {
				if !regexp.MustCompile("(?m)" + want).MatchString(text) {
					t.Errorf("%q is not in\n%s", want, text)
				}
			}
			if strings.Contains(text, c.not) {
				t.Errorf("%q is in\n%s", c.not, text)
			}
		})
	}
}

// inWords runs a demo of two candidates until one is elected.
func inWords(t *testing.T, env, args []string) string {
	t.Helper()
	p := program.Command(t, guardtest.Self(), append([]string{"--candidates", "2", "--crash-every", "0"}, args...)...)
	p.Cmd.Env = append(append(p.Cmd.Env, "TMPDIR="+t.TempDir()), env...)
	p.Start().Says(" elected ")
	p.Stops(0)
	if p.Errs.String() != "" {
		t.Errorf("on standard error:\n%s", &p.Errs)
	}
	return p.Out.String()
}
