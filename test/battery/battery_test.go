package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/tenure-go/tenure/test/battery/internal/journal"
	"github.com/tenure-go/tenure/test/internal/figures"
	"github.com/tenure-go/tenure/test/internal/machine"
	"github.com/tenure-go/tenure/test/internal/natsd"
)

func TestMain(m *testing.M) {
	natsd.Main()
	if err := flag.Set("test.parallel", "4"); err != nil { // rows wait far more than they work
		panic(err)
	}
	os.Exit(m.Run())
}

func openBattery(t *testing.T) *battery {
	t.Helper()
	if !machine.Supported {
		t.Skip("the clocks of two processes cannot be compared here")
	}
	b, err := open(t.Context(), options{quick: true, lease: 1500 * time.Millisecond, runs: 1, side: 3, seed: 1}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.close)
	return b
}

func chosen(t *testing.T, name string) row {
	t.Helper()
	r, err := choose(name)
	if err != nil {
		t.Fatal(err)
	}
	return r[0]
}

// TestPlay keeps the battery itself from rotting: one row of each sort. The rest, and the controls, are for the command.
func TestPlay(t *testing.T) {
	t.Parallel()
	b := openBattery(t)
	for _, name := range []string{"crash-both", "blackhole", "stop"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			holds(t, b, chosen(t, name))
		})
	}
}

// holds plays a row, again if the machine stood still meanwhile: then that something came late says nothing. That nothing comes at all, each
// time, is no matter of time.
func holds(t *testing.T, b *battery, r row) {
	t.Helper()
	for try := 1; ; try++ {
		o, evidence := b.trial(&job{row: r, runs: 1}, fmt.Sprintf("test-%s-%d", r.name, try))
		switch {
		case o.passed(false) && o.byTime.Terms >= crew && len(o.next) > 0:
			return
		case o.disturbed(b.lease) && try < tries:
		case o.disturbed(b.lease) && len(o.errs) == 0:
			t.Logf("the machine stood still, so that this was late says nothing:\n%s", evidence)
			return
		default:
			t.Fatalf("%+v\n%s", o, evidence)
		}
	}
}

// TestFlaws: each is of the source as it is, and each row has the control that it should have.
func TestFlaws(t *testing.T) {
	named := map[*flaw]bool{}
	for _, r := range rows() {
		for _, f := range r.flaws {
			named[f] = true
		}
	}
	for _, f := range flaws() {
		if _, err := f.overlay(t.TempDir()); err != nil {
			t.Error(err)
		}
		if !named[f] {
			t.Errorf("no row has flaw %s", f.name)
		}
		delete(named, f)
	}
	for f := range named {
		t.Errorf("flaw %s is not among the flaws", f.name)
	}
}

// sleeper runs a process that does nothing, with the mark of a stage, and what tenure would tell it.
func sleeper(t *testing.T, mark string, env ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command("sleep", "60")
	cmd.Env = append([]string{markVariable + "=" + mark}, env...)
	machine.Together(cmd)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(glance) { // it shows its environment a moment after it has begun
		if all, err := processesOf(mark); err != nil || len(all) > 0 {
			return cmd
		}
		if time.Now().After(end) {
			t.Fatal("it is not seen")
		}
	}
}

func bareStage(t *testing.T) *stage {
	t.Helper()
	if !machine.Supported {
		t.Skip("processes cannot be looked at here")
	}
	b := &battery{ctx: t.Context(), options: options{lease: time.Second}}
	return &stage{b: b, lease: time.Second, mark: t.Name()}
}

// TestOrphans: what is left of an older worker is found when a newer begins, though it does nothing, and what is left of a tenure
// when that has ended.
func TestOrphans(t *testing.T) {
	for _, c := range []struct {
		name, why string
		env       []string
		orphans   int
	}{
		{"older", "it has a lower token", []string{"TENURE_TOKEN=6", "TENURE_ID=c1"}, 1},
		{"present", "it is the one that began", []string{"TENURE_TOKEN=7", "TENURE_ID=c1"}, 0},
		{"guard", "it was told no token", nil, 0},
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
			if err := s.vanish(&candidate{stage: s, number: number}, 0); err != nil || s.seen.orphans != want {
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
		for end := time.Now().Add(10 * time.Second); ; time.Sleep(glance) { // it becomes a zombie, as nobody waits for it
			all, err := processesOf(s.mark)
			if err != nil {
				t.Fatal(err)
			}
			if len(all) == 0 {
				break
			}
			if time.Now().After(end) {
				t.Fatalf("a zombie counts as a process: %v", all)
			}
		}
	})
}

// TestStrike: nothing is left of a stage, whatever there was.
func TestStrike(t *testing.T) {
	s := bareStage(t)
	cmd := sleeper(t, s.mark)
	if err := machine.Pause(cmd.Process.Pid); err != nil {
		t.Fatal(err)
	}
	s.strike()
	if err := cmd.Wait(); err == nil || cmd.ProcessState.ExitCode() != -1 {
		t.Errorf("it ended with %v", err)
	}
}

// TestLate: the bound counts from the fault.
func TestLate(t *testing.T) {
	s := bareStage(t)
	s.watch = &watch{}
	at := machine.Now()
	s.timed(at, reign{}, reign{began: at + int64(s.bound())})
	if len(s.seen.wrong) > 0 {
		t.Errorf("wrong: %q", s.seen.wrong)
	}
	s.timed(at, reign{}, reign{began: at + int64(s.bound()) + 1})
	if len(s.seen.wrong) != 1 || len(s.seen.next) != 2 {
		t.Errorf("%+v", s.seen)
	}
}

// TestVerdicts: what makes a row fail.
func TestVerdicts(t *testing.T) {
	var stale, regressed judgement
	stale.byOrder.Stale, regressed.byTime.Regressed = 1, 1
	for _, c := range []struct {
		name string
		o    outcome
		want figures.Verdict
	}{
		{"nothing", outcome{}, figures.Held},
		{"an act", outcome{judgement: stale}, figures.Broken},
		{"a token", outcome{judgement: regressed}, figures.Broken},
		{"a promise", outcome{wrong: []string{"x"}}, figures.Broken},
		{"a figure", outcome{figures: []figure{{verdict: figures.Missed}}}, figures.Missed},
		{"an error", outcome{errs: []error{errors.New("x")}}, figures.Unmeasured},
	} {
		o := (outcome{}).plus(c.o)
		if got := o.verdict(); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
		if o.passed(true) != (c.want <= figures.Held) || o.passed(false) != (c.want <= figures.Missed) {
			t.Errorf("%s: passes, if strict: %v, else: %v", c.name, o.passed(true), o.passed(false))
		}
	}
}

// TestDisturbed: a machine that stands still excuses what comes late, and nothing else.
func TestDisturbed(t *testing.T) {
	const lease = time.Second
	var stale judgement
	stale.byTime.Stale = 1
	late := []string{"something came late"}
	for _, c := range []struct {
		name  string
		o     outcome
		final bool
		said  string
	}{
		{"nothing wrong", outcome{stood: lease}, false, fine},
		{"late", outcome{wrong: late, stood: lease / 10}, false, failed},
		{"late, and it stood still", outcome{wrong: late, stood: lease}, false, disturbed},
		{"for the last time", outcome{wrong: late, stood: lease}, true, failed},
		{"an act, and it stood still", outcome{judgement: stale, stood: lease}, false, failed},
		{"a process, and it stood still", outcome{wrong: late, orphans: 1, stood: lease}, false, failed},
	} {
		j := &job{}
		said, again := j.take(c.o, lease, true, c.final)
		if said != c.said || again != (said == disturbed) || j.passed(true) != (said == fine || said == disturbed) {
			t.Errorf("%s: %q, again: %v, passed: %v", c.name, said, again, j.passed(true))
		}
	}
}

// TestControls: a control is played again until its flaw shows, and passes if it does.
func TestControls(t *testing.T) {
	var stale judgement
	stale.byTime.Stale = 1
	j := &job{flaw: releasedEarly}
	for _, c := range []struct {
		o     outcome
		final bool
		said  string
		again bool
	}{
		{outcome{}, false, hides, true},
		{outcome{wrong: []string{"something came late"}, stood: time.Hour}, true, hides, false},
		{outcome{judgement: stale}, false, shows, false},
	} {
		said, again := j.take(c.o, time.Second, true, c.final)
		if said != c.said || again != c.again || j.passed(true) != (said == shows) {
			t.Errorf("%+v: %q, again: %v, passed: %v", c.o, said, again, j.passed(true))
		}
	}
}

func TestExitCodes(t *testing.T) {
	for _, c := range []struct {
		args string
		want int
		says string
	}{
		{"-rows", exitOK, "crash-both"},
		{"-rows -row crash.*", exitOK, "crash-guard"},
		{"-row nonsense", exitUsage, "no row is"},
		{"-row (", exitUsage, "missing closing"},
		{"-runs 0", exitUsage, ""},
		{"stray", exitUsage, ""},
	} {
		var out strings.Builder
		if got := run(t.Context(), strings.Fields(c.args), &out, &out); got != c.want || !strings.Contains(out.String(), c.says) {
			t.Errorf("%s: exit %d, %q; want %d, %q", c.args, got, out.String(), c.want, c.says)
		}
	}
}

// TestEvidence: what is shown of a run that failed.
func TestEvidence(t *testing.T) {
	s := bareStage(t)
	s.dir = t.TempDir()
	s.candidates = []*candidate{{stage: s, number: 1}}
	if err := os.WriteFile(s.candidates[0].log(), []byte(strings.Repeat("x", tailBytes)+"\nthe last line\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.tell("c1: a fault")
	s.watch = &watch{records: []journal.Record{{What: journal.Began, PID: 5}, {What: journal.Act, PID: 5}, {What: journal.Act, PID: 5, At: 2e9}}}
	got := s.evidence(outcome{errs: []error{errors.New("an error")}})
	for _, want := range []string{"error: an error", "c1: a fault", "process 5 of 0: began", "act, and 1 more of 0 until 2.0000", "the last line"} {
		if !strings.Contains(got, want) {
			t.Errorf("it lacks %q:\n%s", want, got)
		}
	}
	if strings.Contains(got, "xxx") {
		t.Error("all of the log is shown")
	}
}

// TestTables: rows, controls and figures have a table each.
func TestTables(t *testing.T) {
	var out strings.Builder
	seen := outcome{runs: 1, figures: []figure{{"a measure", "1 MB", "2 MB", figures.Held}}}
	r := results{battery: &battery{options: options{lease: time.Second}}, noise: "Noise", jobs: []*job{
		{row: row{name: "r", title: "a title"}, seen: seen}, {row: row{name: "r"}, flaw: releasedEarly, seen: outcome{}},
	}}
	r.print(&out, true)
	for _, want := range []string{"| r | 1 | 0 | 0 | 0 | 0 | 0 |", "| released-early | r |", "| BROKEN |", "| r | a measure | 1 MB | 2 MB | ok |", "- r: a title", "Noise"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the tables lack %q:\n%s", want, out.String())
		}
	}
	if r.passed() {
		t.Error("a control whose flaw does not show passes")
	}
}
