package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tenure-go/tenure/internal/crew"
	"github.com/tenure-go/tenure/internal/witness"
	"github.com/tenure-go/tenure/test/internal/figures"
	"github.com/tenure-go/tenure/test/internal/machine"
)

func bareStage(t *testing.T) *stage {
	t.Helper()
	b := &battery{ctx: t.Context(), options: options{lease: time.Second}}
	return &stage{b: b, row: row{store: "nats"}, lease: time.Second, mark: t.Name()}
}

// TestFlaws: the text that each flaw replaces is in the source, and each row has its control.
func TestFlaws(t *testing.T) {
	named := map[*flaw]bool{}
	for _, r := range rows() {
		for _, f := range r.flaws {
			named[f] = true
		}
	}
	top, err := source()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range flaws() {
		if _, err := f.overlay(top, t.TempDir()); err != nil {
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

// TestControlsOfSeveralStores: each row has its controls once, on the first store that has the row.
func TestControlsOfSeveralStores(t *testing.T) {
	chosen, err := choose([]string{"sqlite", "postgres"}, "crash|postgres-(cut|hang)")
	if err != nil {
		t.Fatal(err)
	}
	got := ""
	for _, r := range chosen {
		got += fmt.Sprint(r.name, ":", len(r.flaws), " ")
	}
	if want := "sqlite-crash:1 postgres-crash:0 postgres-cut:1 postgres-hang:1 "; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestLate: the bound counts from the fault, and a late worker violates no guarantee.
func TestLate(t *testing.T) {
	s := bareStage(t)
	s.watch = &watch{}
	at := machine.Now()
	s.timed(at, reign{}, reign{began: at + int64(s.bound())})
	if len(s.seen.late) > 0 {
		t.Errorf("late: %q", s.seen.late)
	}
	s.timed(at, reign{}, reign{began: at + int64(s.bound()) + 1})
	if len(s.seen.late) != 1 || len(s.seen.wrong) != 0 || len(s.seen.next) != 2 {
		t.Errorf("%+v", s.seen)
	}
}

// TestVerdicts: these outcomes fail a row.
func TestVerdicts(t *testing.T) {
	stale, regressed := witness.Verdict{Stale: 1}, witness.Verdict{Regressed: 1}
	for _, c := range []struct {
		name string
		o    outcome
		want figures.Verdict
	}{
		{"nothing", outcome{}, figures.Held},
		{"an act", outcome{acts: stale}, figures.Broken},
		{"a token", outcome{acts: regressed}, figures.Broken},
		{"an act after the end", outcome{acts: witness.Verdict{AfterEnd: 1}}, figures.Broken},
		{"a promise", outcome{wrong: []string{"x"}}, figures.Broken},
		{"late", outcome{late: []string{"x"}}, figures.Missed},
		{"a figure", outcome{figures: []figure{{verdict: figures.Missed}}}, figures.Missed},
		{"an error", outcome{errs: []error{errors.New("x")}}, figures.Unmeasured},
	} {
		o := (outcome{}).plus(c.o)
		if got := o.verdict(); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
		if o.passed() != (c.want <= figures.Missed) {
			t.Errorf("%s: passes: %v", c.name, o.passed())
		}
	}
}

// TestDisturbed: a wait for a processor excuses late events and those that the loss of a lease may
// cause, and nothing else.
func TestDisturbed(t *testing.T) {
	const lease = time.Second
	stale := witness.Verdict{Stale: 1}
	late, wrong := []string{"something came late"}, []string{"a promise"}
	for _, c := range []struct {
		name  string
		o     outcome
		final bool
		said  string
	}{
		{"nothing wrong", outcome{waited: lease}, false, fine},
		{"late", outcome{late: late, waited: lease / 10}, false, fine},
		{"late, and a thread waited", outcome{late: late, waited: lease}, false, fine},
		{"a promise", outcome{wrong: wrong, waited: lease / 10}, false, failed},
		{"a promise, and a thread waited", outcome{wrong: wrong, waited: lease}, false, disturbed},
		{"a promise for the last time", outcome{wrong: wrong, waited: lease}, true, excused},
		{"an error for the last time", outcome{errs: []error{errors.New("x")}, waited: lease}, true, failed},
		{"an act, and a thread waited", outcome{acts: stale, waited: lease}, false, failed},
		{"a process", outcome{wrong: wrong, orphans: 1, waited: lease / 10}, false, failed},
		{"a process, and a thread waited", outcome{wrong: wrong, orphans: 1, waited: lease}, false, disturbed},
		{"a process of a tenure that ended in order", outcome{wrong: wrong, orphans: 1, leftovers: 1, waited: lease}, false, failed},
		{"a fault that the second judge found", outcome{unsafe: wrong}, false, failed},
		{"such a fault, and a thread waited", outcome{unsafe: wrong, waited: lease}, false, failed},
		{"a process for the last time", outcome{wrong: wrong, orphans: 1, waited: lease}, true, failed},
	} {
		j := &job{}
		said, again := j.take(c.o, lease, c.final)
		if said != c.said || again != (said == disturbed) || j.passed() != (said != failed) {
			t.Errorf("%s: %q, again: %v, passed: %v", c.name, said, again, j.passed())
		}
	}
}

// TestControls: a control is run again until its flaw shows. It passes if the flaw shows.
func TestControls(t *testing.T) {
	stale := witness.Verdict{Stale: 1}
	j := &job{flaw: releasedEarly}
	for _, c := range []struct {
		o     outcome
		final bool
		said  string
		again bool
	}{
		{outcome{}, false, hides, true},
		{outcome{wrong: []string{"something came late"}, waited: time.Hour}, true, hides, false},
		{outcome{acts: stale}, false, shows, false},
		{outcome{acts: stale, unsafe: []string{"the judges differ"}}, false, failed, false},
	} {
		said, again := j.take(c.o, time.Second, c.final)
		if said != c.said || again != c.again || j.passed() != (said == shows) {
			t.Errorf("%+v: %q, again: %v, passed: %v", c.o, said, again, j.passed())
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
		{"-rows -store sqlite,postgres -row crash|postgres-cut", exitOK, "postgres-cut"},
		{"-store memory", exitUsage, "no candidate can use store"},
		{"-runs 0", exitUsage, ""},
		{"-side -1", exitUsage, ""},
		{"stray", exitUsage, ""},
	} {
		var out strings.Builder
		if got := run(t.Context(), strings.Fields(c.args), &out, &out); got != c.want || !strings.Contains(out.String(), c.says) {
			t.Errorf("%s: exit %d, %q; want %d, %q", c.args, got, out.String(), c.want, c.says)
		}
	}
}

// TestNextWorkerIsAwaitedWhileACandidateRuns: a candidate whose command was killed ends without
// leading again.
func TestNextWorkerIsAwaitedWhileACandidateRuns(t *testing.T) {
	var ended [2]chan struct{}
	for why, happens := range map[string]func(s *stage){
		"a worker begins":            func(s *stage) { s.watch.reigns.Add(reign{number: 1}) },
		"the last candidate ends":    func(s *stage) { close(ended[0]) },
		"the battery's time is over": nil,
	} {
		t.Run(why, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := bareStage(t)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				s.b.ctx, s.watch = ctx, &watch{}
				for i := range ended {
					ended[i] = make(chan struct{})
					s.candidates = append(s.candidates, &candidate{stage: s, ended: ended[i]})
				}
				var failed error
				done := false
				go func() {
					_, failed = s.nextOfRunning(reign{})
					done = true
				}()
				close(ended[1])
				synctest.Wait()
				if done {
					t.Error("it does not wait while a candidate runs")
				}
				if happens == nil {
					cancel()
				} else {
					happens(s)
				}
				synctest.Wait()
				if !done || (failed == nil) != (why == "a worker begins") {
					t.Errorf("done: %v, %v", done, failed)
				}
			})
		})
	}
}

// TestCodesOfCandidatesThatEndByThemselves: only the battery ends a tenure.
func TestCodesOfCandidatesThatEndByThemselves(t *testing.T) {
	for script, wrong := range map[string]int{"exit 0": 0, "exit 137": 0, "kill -9 $$": 0, "exit 2": 1, "exit 125": 1} {
		s := bareStage(t)
		p, err := crew.Start(exec.Command("/bin/sh", "-c", script))
		if err != nil {
			t.Fatal(err)
		}
		<-p.Ended()
		s.candidates = []*candidate{{stage: s, Process: p, ended: p.Ended()}}
		if s.checkCodes(); len(s.seen.wrong) != wrong {
			t.Errorf("%s: %q", script, s.seen.wrong)
		}
	}
}

// TestEvidence checks the evidence of a run that failed.
func TestEvidence(t *testing.T) {
	s := bareStage(t)
	s.dir = t.TempDir()
	s.candidates = []*candidate{{stage: s, number: 1}}
	if err := os.WriteFile(s.candidates[0].log(), []byte(strings.Repeat("x", tailBytes)+"\nthe last line\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.note("c1: a fault")
	s.watch = &watch{}
	s.watch.records.Add(witness.Record{What: witness.Began, PID: 5}, witness.Record{What: witness.Act, PID: 5},
		witness.Record{What: witness.Act, PID: 5, At: 2e9})
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

// TestTables: rows, controls and figures each have a table.
func TestTables(t *testing.T) {
	var out strings.Builder
	seen := outcome{runs: 1, figures: []figure{{"a measure", "1 MB", "2 MB", figures.Held}}}
	r := results{battery: &battery{options: options{lease: time.Second}}, noise: "Noise", jobs: []*job{
		{row: row{name: "r", title: "a title", store: "nats"}, seen: seen}, {row: row{name: "r", store: "nats"}, flaw: releasedEarly, seen: outcome{}},
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
