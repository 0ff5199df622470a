package jobs

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/tenure-go/tenure/cmd/internal/fault"
	"github.com/tenure-go/tenure/cmd/internal/test/must"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/memory"
	"github.com/tenure-go/tenure/schedule"
)

func write(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "jobs.yaml")
	must.OK(t, os.WriteFile(file, []byte(text), 0o600))
	return file
}

// A job has its own settings, else those of defaults, wherever these are in the file, else the
// usual ones.
func TestFile(t *testing.T) {
	all, err := Read(write(t, `
jobs:
  - name: report
    schedule: "0 3 * * *"
    command: [./report, --full]
    timeout: 1h
    at-least-once: false
  - name: clean
    schedule: 0 4 * * *
    command: rm -f *.tmp | cat
    overlap: queue
defaults: {timezone: Europe/Berlin, timeout: 90s, at-least-once: true, catch-up: none}
`))
	must.OK(t, err)
	want := []Job{
		{Name: "report", Schedule: "0 3 * * *", Command: Command{"./report", "--full"}, Settings: Settings{
			Timezone: "Europe/Berlin", CatchUp: "none", Overlap: "skip", Window: Duration(time.Hour), Timeout: Duration(time.Hour)}},
		{Name: "clean", Schedule: "0 4 * * *", Command: Command{"sh", "-c", "rm -f *.tmp | cat"}, Settings: Settings{
			Timezone: "Europe/Berlin", CatchUp: "none", Overlap: "queue", AtLeastOnce: true, Window: Duration(time.Hour), Timeout: Duration(90 * time.Second)}},
	}
	if !reflect.DeepEqual(all, want) {
		t.Errorf("got %+v", all)
	}
}

// Each error names the file, and the line or the job.
func TestWrongFiles(t *testing.T) {
	const job = "jobs:\n  - name: a\n    schedule: \"@daily\"\n    command: x\n"
	for text, want := range map[string]string{
		"":                                   ": it has no jobs",
		"jobs: []":                           ": it has no jobs",
		job + "---\n" + job:                  ": it has more than one document",
		job + "defalts: {}":                  `: line 5: there is no setting "defalts"`,
		job + "    shedule: x":               `: line 5: there is no setting "shedule"`,
		job + "    name: b":                  `: line 5: "name" is given twice`,
		job + "    timeout: 5":               `: line 5: "5" is not a time such as 500ms, 15s or 1h30m`,
		job + "    timeout: -5s":             `: line 5: "-5s" is not a time such as 500ms, 15s or 1h30m`,
		job + "    window: [1h]":             `: line 5: a list is not a text`,
		job + "    at-least-once: maybe":     `: line 5: "maybe" is not true or false`,
		"defaults: {name: a}\n" + job:        `: line 1: there is no setting "name"`,
		"jobs:\n  - command: {a: b}":         `: line 2: a map is not a text or a list of texts`,
		"jobs:\n  - schedule: */5 * * * *\n": `: line 2: did not find expected alphabetic or numeric character`,
		"jobs:\n  - schedule: @daily\n":      `: line 2: found character that cannot start any token`,
	} {
		file := write(t, text)
		if _, err := Read(file); err == nil || !strings.HasPrefix(err.Error(), file+want) {
			t.Errorf("%s\nsays %v", text, err)
		} else if f, _ := errors.AsType[*fault.Error](err); strings.Contains(text, "schedule: ") && strings.Contains(want, "charac") && !strings.Contains(f.Hint, "quotes") {
			t.Errorf("%s: there is no hint", text)
		}
	}
}

// slashless is a store whose keys have no slash.
type slashless struct{ driver.Bounded }

func (slashless) CheckKey(string) error { return errors.New("it has a slash") }

// Each error names the setting.
func TestCheck(t *testing.T) {
	good := func() Job { return Job{Name: "a", Schedule: "@daily", Command: Command{"x"}, Settings: Usual()} }
	named := func(job, setting string) string { return job + "." + setting }
	for want, change := range map[string]func(*Job){
		"":                                 func(*Job) {},
		`a.catch-up is "some"; it must be`: func(j *Job) { j.CatchUp = "some" },
		`a.overlap is "wait"; it must be`:  func(j *Job) { j.Overlap = "wait" },
		`a.timezone is "Berlin"; it must`:  func(j *Job) { j.Timezone = "Berlin" },
		`a.timezone is "Local"; it must`:   func(j *Job) { j.Timezone = "Local" },
		`a.schedule is missing`:            func(j *Job) { j.Schedule = "" },
		`a.command is missing`:             func(j *Job) { j.Command = nil },
		`...name is ".."; it must be`:      func(j *Job) { j.Name = ".." },
		`schedule: job "a/b": the name`:    func(j *Job) { j.Name = "a/b" },
		`schedule: job "": the name must`:  func(j *Job) { j.Name = "" },
		`a.schedule: schedule "61`:         func(j *Job) { j.Schedule = "61 * * * *" },
	} {
		j := good()
		change(&j)
		err := Check([]Job{j}, "e", schedule.Config{}, driver.AbilitiesOf(memory.New()).Bounded, named)
		if (err == nil) != (want == "") || err != nil && !strings.HasPrefix(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	if err := Check([]Job{good(), good()}, "e", schedule.Config{}, nil, named); err == nil || err.Error() != `schedule: two jobs are named "a"` {
		t.Errorf("got %v", err)
	}
	if err := Check([]Job{good()}, "e", schedule.Config{}, slashless{}, named); err == nil || !strings.Contains(err.Error(), `the store cannot hold the key "e/jobs/a"`) {
		t.Errorf("got %v", err)
	}
}
