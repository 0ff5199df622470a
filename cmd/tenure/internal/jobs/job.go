// Package jobs runs the commands of scheduled jobs, each under a guard of its own, while this
// process leads an election.
package jobs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/schedule"
)

// Job is a job as people write it: in flags, or in a file.
type Job struct {
	Name     string  `yaml:"name"`
	Schedule string  `yaml:"schedule"`
	Command  Command `yaml:"command"`
	Settings `yaml:",inline"`
}

// Settings are those that a job need not have. Their names are also those of the flags.
type Settings struct {
	Timezone    string   `yaml:"timezone"`
	CatchUp     string   `yaml:"catch-up"`
	Overlap     string   `yaml:"overlap"`
	AtLeastOnce bool     `yaml:"at-least-once"`
	Window      Duration `yaml:"window"`
	Timeout     Duration `yaml:"timeout"`
}

// The values of Settings.CatchUp, and their meaning.
var catchUps = map[string]schedule.CatchUp{
	"last": schedule.CatchUpLast, "none": schedule.CatchUpNone, "all": schedule.CatchUpAll,
}

// Usual returns the settings of jobs that name none.
func Usual() Settings {
	return Settings{Timezone: "UTC", CatchUp: "last", Overlap: "skip", Window: Duration(time.Hour)}
}

// Check returns an error that names each setting with a wrong value. Named returns how people know
// the setting of a job, and limits are those of the store.
func Check(all []Job, election string, cfg schedule.Config, limits driver.Bounded, named func(job, setting string) string) error {
	var problems []error
	for i := range all {
		j := &all[i]
		problems = append(problems, j.check(func(setting string) string { return named(j.Name, setting) }))
	}
	if err := errors.Join(problems...); err != nil {
		return err
	}
	_, err := plan(unopened{limits: limits}, election, cfg, all, 0, func(*Job) work { return func(context.Context, schedule.Tick) error { return nil } })
	return err
}

// unopened stands for a store before this process is connected to it.
type unopened struct {
	driver.Store
	limits driver.Bounded
}

// Abilities returns the limits of the store.
func (u unopened) Abilities() driver.Abilities { return driver.Abilities{Bounded: u.limits} }

func (j *Job) check(named func(setting string) string) error {
	var problems []error
	wrong := func(setting, value, must string) {
		problems = append(problems, fmt.Errorf("%s is %q; it must be %s", named(setting), value, must))
	}
	if _, ok := catchUps[j.CatchUp]; !ok {
		wrong("catch-up", j.CatchUp, "last, none or all")
	}
	if !slices.Contains([]string{"skip", "queue"}, j.Overlap) {
		wrong("overlap", j.Overlap, "skip or queue")
	}
	zone, err := time.LoadLocation(j.Timezone)
	switch {
	case err != nil || zone == time.Local:
		wrong("timezone", j.Timezone, "a name of the time zone database, such as Europe/Berlin")
	case j.Schedule != "":
		if err := checkSchedule(j.Schedule, zone); err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", named("schedule"), err))
		}
	}
	if j.Schedule == "" {
		problems = append(problems, fmt.Errorf("%s is missing", named("schedule")))
	}
	if len(j.Command) == 0 || j.Command[0] == "" {
		problems = append(problems, fmt.Errorf("%s is missing", named("command")))
	}
	if j.Name != "" && strings.Trim(j.Name, ".") == "" { // a directory has this name
		wrong("name", j.Name, "a name with letters or digits")
	}
	return errors.Join(problems...)
}

// checkSchedule returns why package schedule does not take a schedule.
func checkSchedule(text string, zone *time.Location) error {
	j := schedule.Every(text).Named("job").Do(func(context.Context, schedule.Tick) error { return nil })
	j.Zone = zone
	_, err := schedule.New(unopened{}, "election", schedule.Config{}, j)
	return errors.Unwrap(err) // without the name of this job
}

// work runs the command of a job.
type work = func(context.Context, schedule.Tick) error

// plan returns the jobs for package schedule, each with its work.
func plan(
	store driver.Store, election string, cfg schedule.Config, all []Job, needs time.Duration, workOf func(*Job) work,
) (*schedule.Jobs, error) {
	var planned []schedule.Job
	for i := range all {
		j := &all[i]
		zone, err := time.LoadLocation(j.Timezone)
		if err != nil {
			return nil, err
		}
		planned = append(planned, schedule.Job{
			Name: j.Name, Spec: j.Schedule, Zone: zone, Run: workOf(j), AtLeastOnce: j.AtLeastOnce, CatchUp: catchUps[j.CatchUp],
			Queue: j.Overlap == "queue", Window: time.Duration(j.Window), Timeout: time.Duration(j.Timeout), Needs: needs,
		})
	}
	return schedule.New(store, election, cfg, planned...)
}
