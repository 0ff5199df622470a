package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const example = `# A comment.
lane one
step good It passes.
    echo fine
step bad It fails.
    echo "replay: go run ./x -seed 7"
    false
    echo unreached

lane last
step after It follows.
    test -e "$MARK"

lane two
step mark It makes what the last lane looks for.
    touch "$MARK"
`

func TestStepsThatFailDoNotHideOthers(t *testing.T) {
	t.Setenv("MARK", filepath.Join(t.TempDir(), "mark"))
	all, err := parse(example)
	must(t, err)
	var out bytes.Buffer
	r := &runner{limit: time.Hour, logs: t.TempDir(), out: &out, began: time.Now()}
	results := r.run(context.Background(), all)
	outcomes := ""
	for _, res := range results {
		outcomes += res.name + ": " + res.outcome + "\n"
	}
	if want := "good: passed\nbad: exit status 1\nafter: passed\nmark: passed\n"; outcomes != want {
		t.Errorf("outcomes:\n%swant:\n%s", outcomes, want)
	}
	if got := results[1].replay; got != "go run ./x -seed 7" {
		t.Errorf("the failed step offers %q to replay", got)
	}
	var report bytes.Buffer
	if code := (&options{}).report(&report, all, results, 0); code != 1 {
		t.Errorf("exit code %d after a failure", code)
	}
	if said := report.String(); !strings.Contains(said, "$ false") || strings.Contains(said, "echo unreached") {
		t.Errorf("the report does not show where the step failed:\n%s", said)
	}
	if code := (&options{}).report(&report, all, results[:1], 0); code != 0 {
		t.Errorf("exit code %d without a failure", code)
	}
}

// TestNotice: the table shows the notice of a step that passes.
func TestNotice(t *testing.T) {
	all, err := parse("lane one\nstep old It passes, with a notice.\n    echo x; echo 'attention: the list | is old'\n")
	must(t, err)
	r := &runner{limit: time.Hour, logs: t.TempDir(), out: io.Discard, began: time.Now()}
	if got := r.run(context.Background(), all)[0].note(); got != "passed, but the list / is old" {
		t.Errorf("the table says %q", got)
	}
}

func TestStepHasATimeLimit(t *testing.T) {
	all := []step{{name: "hangs", lane: "one", commands: []string{"sleep 1000 & wait"}}, {name: "next", lane: "one", commands: []string{"true"}}}
	r := &runner{limit: time.Millisecond, logs: t.TempDir(), out: new(bytes.Buffer)}
	if results := r.run(context.Background(), all[:1]); results[0].outcome != "not finished within 1ms" {
		t.Errorf("a step without end: %s", results[0].outcome)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for _, res := range r.run(ctx, all) {
		if res.outcome != "not run" {
			t.Errorf("%s after the runner was stopped: %s", res.name, res.outcome)
		}
	}
}

// Only a step whose every failure is that its time was over gets a second run.
func TestOutOfTime(t *testing.T) {
	const late = "--- FAIL: TestA (9s)\n    --- FAIL: TestA/x (9s)\n        a_test.go:7: not in time: a leader leads: not yet\n        b.go:9: a log\n"
	const limit = "panic: test timed out after 10m0s\n\trunning tests:\n\t\tTestB (9s)\n\ngoroutine 1 [running]:\n"
	for _, c := range []struct{ why, output, want string }{
		{"a test waited in vain", late + "FAIL\nFAIL\tx\t9s\nok  \ty\t1s\nFAIL\n", "not in time: a leader leads: not yet"},
		{"the time limit of go test", limit + "FAIL\tx\t600s\n", "panic: test timed out after 10m0s"},
		{"both", late + limit + "FAIL\tx\t600s\n", "not in time: a leader leads: not yet"},
		{"another test of the package failed too", late + "--- FAIL: TestB (0s)\n    b_test.go:1: got 1\nFAIL\nFAIL\tx\t9s\n", ""},
		{"another one before the time limit", "--- FAIL: TestB (0s)\n    b_test.go:1: got 1\n" + limit, ""},
		{"another package failed too", "--- FAIL: TestB (0s)\n    b_test.go:1: got 1\nFAIL\nFAIL\tw\t9s\n" + late, ""},
		{"a violation", late + "    a_test.go:8: two leaders\n", ""},
		{"a race of data", "WARNING: DATA RACE\n" + late, ""},
		{"a crash", late + "panic: runtime error: index out of range\n", ""},
		{"a crash of a program that a test began", late + "fatal error: all goroutines are asleep - deadlock!\n", ""},
		{"no build", late + "FAIL\tz [build failed]\n", ""},
		{"no failed test", "exit status 1\n", ""},
	} {
		if got := outOfTime([]byte(c.output), errors.New("exit status 1")); got != c.want {
			t.Errorf("%s: %q", c.why, got)
		}
	}
}

func TestSecondRuns(t *testing.T) {
	t.Setenv("DIR", t.TempDir())
	const once = `mkdir "$DIR/$0" 2>/dev/null || exit 0; `
	play := func(name, command string) step {
		return step{name: name, lane: "one", commands: []string{"bash -c '" + command + "' " + name}}
	}
	r := &runner{limit: time.Hour, logs: t.TempDir(), out: new(bytes.Buffer), began: time.Now()}
	results := r.run(context.Background(), []step{
		play("code", once+"exit 75"),
		play("test", once+`echo "--- FAIL: TestA"; echo "a.go:1: not in" "time: a | b"; exit 1`),
		play("always", `exit 75`),
		play("fault", once+"exit 1"),
	})
	for i, want := range []string{
		"passed in a second run, alone; the first: its end",
		"passed in a second run, alone; the first: not in time: a / b",
		"exit status 75 in a second run, alone; the first: its end",
		"exit status 1",
	} {
		if got := results[i].note(); got != want {
			t.Errorf("%s: %s", results[i].name, got)
		}
	}
}

func TestFlagsChooseSteps(t *testing.T) {
	all, err := parse(example)
	must(t, err)
	for _, c := range []struct{ only, from, want string }{
		{"", "", "good bad after mark"},
		{"mark,good", "", "mark good"},
		{"", "after", "after mark"},
		{"none", "", ""},
		{"", "none", ""},
	} {
		chosen, err := choose(all, c.only, c.from)
		var names []string
		for _, s := range chosen {
			names = append(names, s.name)
		}
		if got := strings.Join(names, " "); got != c.want || (err == nil) != (c.want != "") {
			t.Errorf("-only %q -from %q: %q, %v; want %q", c.only, c.from, got, err, c.want)
		}
	}
}

func TestWrongFilesAreRefused(t *testing.T) {
	for why, text := range map[string]string{
		"a step outside of a lane":       "step a It is.\n    true\n",
		"a step that proves nothing":     "lane one\nstep a\n    true\n",
		"a step without commands":        "lane one\nstep a It is.\n",
		"a name twice":                   "lane one\nstep a It is.\n    true\nstep a It is.\n    true\n",
		"a command that is not indented": "lane one\nstep a It is.\ntrue\n",
	} {
		if _, err := parse(text); err == nil {
			t.Errorf("%s is accepted", why)
		}
	}
}

func TestPartialRunsMakeOneTable(t *testing.T) {
	all, err := parse(example)
	must(t, err)
	file := filepath.Join(t.TempDir(), "table.md")
	first := []result{{step: all[0], outcome: passed, took: time.Minute}, {step: all[1], outcome: "exit status 1", replay: "again"}}
	second := []result{{step: all[1], outcome: passed, took: time.Second}, {step: all[3], outcome: passed}}
	for i, results := range [][]result{first, second} {
		must(t, mergeInto(file, all, results, []string{"aaaa", "bbbb"}[i]))
	}
	got, err := os.ReadFile(file)
	must(t, err)
	want := tableHead +
		"| good | passed | 1m0s | aaaa |  |\n| bad | passed | 1s | bbbb |  |\n| mark | passed | 0s | bbbb |  |\n"
	if string(got) != want {
		t.Errorf("got:\n%swant:\n%s", got, want)
	}
}

// TestStepsOfTheProject reads the project's own files of steps, and lets bash parse their commands
// without running them.
func TestStepsOfTheProject(t *testing.T) {
	for _, file := range []string{"../../.ci/run.steps", "../../.ci/soak.steps"} {
		text, err := os.ReadFile(file)
		must(t, err)
		all, err := parse(string(text))
		if err != nil {
			t.Errorf("%s: %v", file, err)
		}
		for _, s := range all {
			if said, err := exec.Command("bash", "-n", "-c", strings.Join(s.commands, "\n")).CombinedOutput(); err != nil {
				t.Errorf("%s, step %s: %v\n%s", file, s.name, err, said)
			}
		}
	}
}

// must stops a test that cannot go on.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
