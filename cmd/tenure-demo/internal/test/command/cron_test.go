//go:build integration && unix

package command_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/tenure-go/tenure/cmd/internal/test/must"
	"github.com/tenure-go/tenure/cmd/internal/test/program"
	"github.com/tenure-go/tenure/cmd/tenure-demo/internal/test/servers"
	"github.com/tenure-go/tenure/internal/test/wait"
)

// crontab is an election with a server of its own, and a file that the commands write.
type crontab struct {
	place
	server  *server.Server
	journal string
}

func newCrontab(t *testing.T) *crontab {
	t.Helper()
	s := servers.NATS(t, &server.User{Username: "user", Password: "s3cret"})
	return &crontab{place{t, as(s, "user:s3cret")}, s, filepath.Join(t.TempDir(), "journal")}
}

// soon lets a new job begin in four seconds: by default it skips the ticks of 35 seconds.
var soon = []string{"--lease", "4s", "--clock-offset", "10ms"}

// cron starts a machine.
func (c *crontab) cron(id string, flags ...string) *program.Process {
	c.Helper()
	p := c.tenure("cron", append(append([]string{"--id", id, "--create"}, soon...), flags...)...)
	p.Cmd.Env = append(p.Cmd.Env, "JOURNAL="+c.journal)
	return p.Start()
}

// every are the flags of a job that runs a script each second.
func every(script string, flags ...string) []string {
	return append(append([]string{"--schedule", "@every 1s"}, flags...), "--", "sh", "-c", script)
}

// note is a script that notes the tick and its first argument.
const note = `note() { echo "$TENURE_JOB $TENURE_TICK $TENURE_ATTEMPT $TENURE_ID $1" >>"$JOURNAL"; }; `

// entry is one line of the journal.
type entry struct {
	job, tick, attempt, id, what string
}

func (c *crontab) entries() (all []entry) {
	c.Helper()
	text, err := os.ReadFile(c.journal)
	if !os.IsNotExist(err) {
		must.OK(c, err)
	}
	for line := range strings.Lines(string(text)) {
		f := strings.Fields(line)
		if len(f) == 5 && strings.HasSuffix(line, "\n") {
			all = append(all, entry{f[0], f[1], f[2], f[3], f[4]})
		}
	}
	return all
}

func (c *crontab) count(is func(entry) bool) int {
	c.Helper()
	return len(slices.DeleteFunc(c.entries(), func(e entry) bool { return !is(e) }))
}

func (c *crontab) until(why string, n int, is func(entry) bool) {
	c.Helper()
	wait.Until(c.T, why, func() bool { return c.count(is) >= n })
}

// kept skips the rest of a test if the machine was too busy to keep its lease: then other rules
// decide about its ticks.
func (c *crontab) kept(m *program.Process) {
	c.Helper()
	if strings.Contains(m.Errs.String(), "tenure: lost") {
		c.Skipf("the lease was lost:\n%s", &m.Errs)
	}
}

func notes(what string) func(entry) bool { return func(e entry) bool { return e.what == what } }

// state is what tenure jobs --json shows.
type state struct {
	Job           string
	Late, Overlap int
	Ticks         []struct {
		Planned          time.Time
		State, ID, Error string
		Attempt, Code    int
	}
}

// state returns the state of a job.
func (c *crontab) state(job string) (s state) {
	c.Helper()
	if out := c.says("jobs", "--json", "--job", job).Out; out != "" {
		must.OK(c, json.Unmarshal([]byte(out), &s))
	}
	return s
}

// any reports whether a tick of a job has this state and code.
func (c *crontab) any(job, state string, code int) bool {
	c.Helper()
	for _, t := range c.state(job).Ticks {
		if t.State == state && t.Code == code {
			return true
		}
	}
	return false
}

// tick returns the state of a tick, empty if there is none.
func (c *crontab) tick(job, planned string) (found string) {
	c.Helper()
	for _, t := range c.state(job).Ticks {
		if t.Planned.UTC().Format(time.RFC3339) == planned {
			return t.State
		}
	}
	return ""
}

// TestCronRunsATickOnOneMachine: three machines have the same job. Each tick runs once, on the
// leader. After a hand-over another machine runs the next ticks, and none again.
func TestCronRunsATickOnOneMachine(t *testing.T) {
	t.Parallel()
	c := newCrontab(t)
	c.says("jobs").Must(t, 1, "there is no bucket ELECTIONS")
	machines := map[string]*program.Process{}
	for i := range 3 {
		id := fmt.Sprint("node-", i+1)
		machines[id] = c.cron(id, every(note+`note "$TENURE_ELECTION/$TENURE_TOKEN"`)...)
	}
	any := func(entry) bool { return true }
	c.until("ticks run", 2, any)
	first := c.entries()[0].id
	wait.Until(t, "a hand-over", func() bool { return c.says("hand-over", "--wait", "1h").Code == 0 })
	c.until("another machine runs ticks", 2, func(e entry) bool { return e.id != first })
	table := regexp.MustCompile(`^JOB +SCHEDULE +LAST TICK +STATE +MACHINE +NEXT TICK +MISSED\njob +@every 1s +20\S+Z +\S.* node-\d +20\S+Z +`)
	// NATS may leave out a key that is written meanwhile
	wait.Until(t, "the table of jobs", func() bool {
		r := c.says("jobs")
		return r.Code == 0 && table.MatchString(r.Out)
	})
	c.says("jobs", "--job", "other").Must(t, 3, `^error: .* has no state of job "other" of election "billing"$`)
	for _, m := range machines {
		m.Stops(0)
	}
	ticks := map[string]bool{}
	for _, e := range c.entries() {
		if ticks[e.tick] || e.attempt != "1" || !strings.HasPrefix(e.what, "billing/") {
			t.Errorf("%+v runs again, or its environment is wrong", e)
		}
		ticks[e.tick] = true
	}
}

// TestCronAfterACrash: the leader is killed during a run. The tick is lost, or is run again.
func TestCronAfterACrash(t *testing.T) {
	t.Parallel()
	for flag, again := range map[string]bool{"--at-most-once": false, "--at-least-once": true} {
		t.Run(flag, func(t *testing.T) {
			t.Parallel()
			c := newCrontab(t)
			script := note + `note begin; test "$TENURE_ID" = node-2 || exec sleep 1000`
			first := c.cron("node-1", every(script, flag)...)
			c.until("the first run", 1, notes("begin"))
			tick := c.entries()[0].tick
			second := c.cron("node-2", every(script, flag)...)
			second.Says("leader=node-1")
			must.OK(t, first.Cmd.Process.Kill())
			_ = first.Cmd.Wait()
			c.kept(first)
			c.until("later ticks", 2, func(e entry) bool { return e.id == "node-2" && e.tick != tick })
			c.kept(second)
			runs := c.count(func(e entry) bool { return e.tick == tick })
			if want := map[bool]int{false: 1, true: 2}[again]; runs != want {
				t.Errorf("it has run %d times:\n%v", runs, c.entries())
			}
			if state := c.tick("job", tick); state != map[bool]string{false: "lost", true: "finished"}[again] {
				t.Errorf("it is %q", state)
			}
			if n := c.count(func(e entry) bool { return e.tick == tick && e.attempt == "2" && e.id == "node-2" }); n != runs-1 {
				t.Errorf("%d second attempts", n)
			}
			second.Stops(0)
		})
	}
}

// TestCronOverlap: ticks that come due during a run are skipped, or run one after the other.
func TestCronOverlap(t *testing.T) {
	t.Parallel()
	for _, overlap := range []string{"skip", "queue"} {
		t.Run(overlap, func(t *testing.T) {
			t.Parallel()
			c := newCrontab(t)
			m := c.cron("node-1", every(note+`note begin; sleep 1.2; note end`, "--overlap", overlap)...)
			c.until("four runs", 4, notes("end"))
			m.Stops(0)
			c.kept(m)
			all := c.entries()
			var ticks []time.Time
			for i, e := range all {
				if e.what != []string{"begin", "end"}[i%2] {
					t.Fatalf("runs overlap:\n%v", all)
				}
				if at, err := time.Parse(time.RFC3339, e.tick); e.what == "begin" {
					must.OK(t, err)
					ticks = append(ticks, at)
				}
			}
			skipped := false
			for i, at := range ticks[1:] {
				skipped = skipped || at.Sub(ticks[i]) > time.Second
			}
			if skipped != (overlap == "skip") || c.state("job").Overlap > 0 != skipped {
				t.Errorf("the ticks are %v; %+v", ticks, c.state("job"))
			}
		})
	}
}

// TestCronLimitsARun: a run that takes too long gets SIGTERM and then SIGKILL. It has failed, and
// the job goes on.
func TestCronLimitsARun(t *testing.T) {
	t.Parallel()
	c := newCrontab(t)
	m := c.cron("node-1", every(note+`trap 'note asked' TERM; note begin; while :; do sleep 0.05; done`, "--timeout", "200ms", "--stop-within", "200ms")...)
	c.until("two runs are asked", 2, notes("asked"))
	m.Says("schedule: failed")
	c.kept(m)
	// it has heard of SIGTERM
	asked := slices.DeleteFunc(c.entries(), func(e entry) bool { return e.what != "asked" })[0]
	for _, got := range c.state("job").Ticks {
		if got.Planned.UTC().Format(time.RFC3339) == asked.tick &&
			(got.State != "failed" || got.Code != 137 || !strings.Contains(got.Error, "longer than Timeout 200ms")) {
			t.Errorf("the run is %+v", got)
		}
	}
	m.Stops(0)
}

// TestCronFile: three jobs of a file run at once. Each line of their output has the name of the
// job.
func TestCronFile(t *testing.T) {
	t.Parallel()
	c := newCrontab(t)
	file := filepath.Join(t.TempDir(), "jobs.yaml")
	must.OK(t, os.WriteFile(file, []byte(`
defaults:
  timezone: Europe/Berlin
jobs:
  - name: a
    schedule: "@every 1s"
    command: [sh, -c, 'echo of $TENURE_JOB; touch "$JOURNAL.$TENURE_JOB"; until test -e "$JOURNAL.go"; do sleep 0.02; done']
  - name: b
    schedule: "@every 1s"
    command: 'echo of $TENURE_JOB >&2; touch "$JOURNAL.$TENURE_JOB"; until test -e "$JOURNAL.go"; do sleep 0.02; done'
  - name: fails
    schedule: "@every 1s"
    command: exit 7
`), 0o600))
	m := c.cron("node-1", "--file", file)
	for _, job := range []string{"a", "b"} {
		wait.Until(t, job+" runs", func() bool {
			_, err := os.Stat(c.journal + "." + job)
			return err == nil
		})
	}
	must.OK(t, os.WriteFile(c.journal+".go", nil, 0o600))
	m.Says("a: of a\n")
	m.Says("b: of b\n")
	wait.Until(t, "a job fails", func() bool { return c.any("fails", "failed", 7) })
	c.says("jobs", "--job", "fails").Must(t, 0, `^fails +@every 1s +\S+ +(failed \(code 7\)|started) +node-1 `)
	m.Stops(0)
	if strings.Contains(m.Out.String(), "b: of b") || strings.Contains(m.Errs.String(), "a: of a") {
		t.Errorf("output and errors are mixed:\n%s\n%s", &m.Out, &m.Errs)
	}
}

// TestCronEnds: a running command is not signaled, and nothing new starts. A second signal kills
// it. So does the end of the time that it has.
func TestCronEnds(t *testing.T) {
	t.Parallel()
	const script = note + `trap 'note asked; exit 3' TERM; note begin; until test -e "$JOURNAL.go"; do sleep 0.02; done; note end`
	for why, x := range map[string]struct {
		within       string
		second, lets bool
		state, noted string
	}{
		"it may end":      {within: "1h", lets: true, state: "finished", noted: "end"},
		"a second signal": {within: "1h", second: true, state: "failed"},
		"its time":        {within: "300ms", state: "started", noted: "asked"},
	} {
		t.Run(why, func(t *testing.T) {
			t.Parallel()
			c := newCrontab(t)
			m := c.cron("node-1", every(script, "--finish-within", x.within)...)
			c.until("a run", 1, notes("begin"))
			m.Signal(15)
			m.Says("no more ticks start")
			if x.lets {
				must.OK(t, os.WriteFile(c.journal+".go", nil, 0o600))
			}
			if x.second {
				m.Signal(2)
			}
			m.Ends(0)
			if why != "its time" {
				c.kept(m)
			}
			all := c.entries()
			if len(all) > 2 || all[0].what != "begin" || x.noted != "" && all[len(all)-1].what != x.noted {
				t.Errorf("the command notes %v", all)
			}
			if state := c.tick("job", all[0].tick); state != x.state {
				t.Errorf("the tick is %q", state)
			}
		})
	}
}

// TestCronLosesItsLease: the server is gone, so the guard ends the command.
func TestCronLosesItsLease(t *testing.T) {
	t.Parallel()
	c := newCrontab(t)
	m := c.cron("node-1", every(note+`trap 'note asked; exit 0' TERM; note begin; while :; do sleep 0.02; done`)...)
	c.until("a run", 1, notes("begin"))
	c.server.Shutdown()
	c.until("it is ended", 1, notes("asked"))
	m.Says("schedule: lost")
	m.Stops(0)
}

// TestCronKeepsOutput: each run has a file. The oldest are removed.
func TestCronKeepsOutput(t *testing.T) {
	t.Parallel()
	c := newCrontab(t)
	dir := filepath.Join(t.TempDir(), "logs")
	must.OK(t, os.MkdirAll(filepath.Join(dir, "job"), 0o700))
	must.OK(t, os.WriteFile(filepath.Join(dir, "job", "mine.log"), nil, 0o600))
	m := c.cron("node-1", every(note+`echo out; echo err >&2; note ran`, "--output", dir, "--keep", "2")...)
	c.until("four runs", 4, notes("ran"))
	m.Stops(0)
	files, err := filepath.Glob(filepath.Join(dir, "job", "2*.log"))
	must.OK(t, err)
	all := c.entries()
	last := strings.NewReplacer("-", "", ":", "").Replace(all[len(all)-1].tick)
	if len(files) != 2 || filepath.Base(files[1]) != last+".log" {
		t.Errorf("there are %v after %v", files, all)
	}
	for _, file := range files {
		if text, err := os.ReadFile(file); err != nil || string(text) != "out\nerr\n" {
			t.Errorf("%s has %q, %v", file, text, err)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "job", "mine.log")); err != nil || m.Out.String() != "" {
		t.Errorf("a file of another program is gone (%v), or the output is not kept: %q", err, &m.Out)
	}
}

// TestCronSurvivesADeadGuard: only the run of this guard fails. That of another job goes on.
func TestCronSurvivesADeadGuard(t *testing.T) {
	t.Parallel()
	c := newCrontab(t)
	file := filepath.Join(t.TempDir(), "jobs.yaml")
	script := strings.ReplaceAll(note+`note $PPID; until test -e "$JOURNAL.go"; do sleep 0.02; done; note end`, `"`, `\"`)
	must.OK(t, os.WriteFile(file, []byte(fmt.Sprintf(`
jobs:
  - {name: a, schedule: "@every 1s", command: "%s"}
  - {name: b, schedule: "@every 1s", command: "%s"}
`, script, script)), 0o600))
	m := c.cron("node-1", "--file", file)
	of := func(job string) func(entry) bool { return func(e entry) bool { return e.job == job } }
	c.until("a runs", 1, of("a"))
	c.until("b runs", 1, of("b"))
	all := c.entries()
	for _, e := range all {
		if e.job == "a" {
			pid, err := strconv.Atoi(e.what)
			must.OK(t, err)
			guard, err := os.FindProcess(pid)
			must.OK(t, err)
			must.OK(t, guard.Kill())
			break
		}
	}
	m.Says("the guard died")
	c.until("a runs again", 2, of("a"))
	must.OK(t, os.WriteFile(c.journal+".go", nil, 0o600))
	c.until("b ends", 1, func(e entry) bool { return e.job == "b" && e.what == "end" })
	wait.Until(t, "their states are recorded", func() bool { return c.any("a", "failed", 137) && c.any("b", "finished", 0) })
	m.Stops(0)
}

var measure = flag.Duration("measure", 0, "how long TestCronStart measures")

// TestCronStart measures the time from a tick to the first act of its command, which is a shell
// that starts date.
func TestCronStart(t *testing.T) {
	if *measure == 0 {
		t.Skip("it only measures: -measure 1m -v")
	}
	c := newCrontab(t)
	m := c.cron("node-1", every(note+`note $(date +%s.%N)`)...)
	c.until("a run", 1, func(entry) bool { return true })
	time.Sleep(*measure)
	m.Stops(0)
	var late []time.Duration
	for _, e := range c.entries() {
		planned, err := time.Parse(time.RFC3339, e.tick)
		must.OK(t, err)
		began, err := strconv.ParseFloat(e.what, 64)
		must.OK(t, err)
		late = append(late, time.Duration((began-float64(planned.Unix()))*float64(time.Second)))
	}
	slices.Sort(late)
	t.Logf("%d starts: median %v, 90 %% within %v", len(late), late[len(late)/2], late[len(late)*9/10])
}
